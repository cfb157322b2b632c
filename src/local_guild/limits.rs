//! Discord's limits on embeds and components.

use serde_json::{Map, Value, json};

use super::error::Refusal;

/// Embeds within Discord's limits, with the defaults that clients rely on.
pub(crate) fn check_embeds(embeds: &mut [Value]) -> Result<(), Refusal> {
    if embeds.len() > 10 {
        return Err(Refusal::invalid("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer."));
    }
    let mut total = 0;
    for (at, embed) in embeds.iter_mut().enumerate() {
        strip_nulls(embed);
        let Some(object) = embed.as_object_mut() else {
            return Err(Refusal::invalid(
                format!("embeds.{at}"),
                "MODEL_TYPE_CONVERT",
                "An object is expected.",
            ));
        };
        object.insert("type".to_owned(), json!("rich"));
        if let Some((path, what)) = wrong_type(object) {
            let path = format!("embeds.{at}.{path}");
            return Err(Refusal::invalid(path, "MODEL_TYPE_CONVERT", what));
        }
        let fields = object.get_mut("fields").and_then(Value::as_array_mut);
        for (place, field) in fields.into_iter().flatten().enumerate() {
            if place >= 25 {
                return Err(Refusal::invalid(
                    format!("embeds.{at}.fields"),
                    "BASE_TYPE_MAX_LENGTH",
                    "Must be 25 or fewer.",
                ));
            }
            for (name, limit) in [("name", 256), ("value", 1024)] {
                let path = || format!("embeds.{at}.fields.{place}.{name}");
                match field[name].as_str().map(|text| text.chars().count()) {
                    None | Some(0) => {
                        return Err(Refusal::invalid(
                            path(),
                            "BASE_TYPE_REQUIRED",
                            "This field is required",
                        ));
                    }
                    Some(length) if length > limit => return Err(Refusal::too_long(path(), limit)),
                    Some(length) => total += length,
                }
            }
            if !field["inline"].is_boolean() {
                field["inline"] = json!(false);
            }
        }
        for (path, limit) in
            [("/title", 256), ("/description", 4096), ("/footer/text", 2048), ("/author/name", 256)]
        {
            let length =
                embed.pointer(path).and_then(Value::as_str).map_or(0, |it| it.chars().count());
            if length > limit {
                return Err(Refusal::too_long(
                    format!("embeds.{at}{}", path.replace('/', ".")),
                    limit,
                ));
            }
            total += length;
        }
    }
    if total > 6000 {
        return Err(Refusal::invalid(
            "embeds",
            "MAX_EMBED_SIZE_EXCEEDED",
            "Embed size exceeds maximum size of 6000",
        ));
    }
    Ok(())
}

/// Where a part of an embed is of another type than Discord takes, and what is expected there.
fn wrong_type(embed: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    const TEXTS: [&str; 9] = [
        "/title",
        "/description",
        "/url",
        "/footer/text",
        "/footer/icon_url",
        "/author/name",
        "/author/url",
        "/image/url",
        "/thumbnail/url",
    ];
    const PARTS: [&str; 4] = ["footer", "author", "image", "thumbnail"];
    if embed.get("fields").is_some_and(|it| !it.is_array()) {
        return Some(("fields", "A list is expected."));
    }
    if let Some(part) =
        PARTS.into_iter().find(|it| embed.get(*it).is_some_and(|it| !it.is_object()))
    {
        return Some((part, "An object is expected."));
    }
    let text = |path: &str| {
        let mut names = path.trim_start_matches('/').split('/');
        let first = embed.get(names.next()?)?;
        names.try_fold(first, |at, name| at.get(name))
    };
    if let Some(path) = TEXTS.into_iter().find(|path| text(path).is_some_and(|it| !it.is_string()))
    {
        return Some((path.trim_start_matches('/'), "Text is expected."));
    }
    let is_time = |value: &Value| {
        value.as_str().is_some_and(|text| {
            chrono::DateTime::parse_from_rfc3339(text).is_ok()
                || text.parse::<chrono::NaiveDateTime>().is_ok()
        })
    };
    if embed.get("timestamp").is_some_and(|it| !is_time(it)) {
        return Some(("timestamp", "An ISO 8601 time is expected."));
    }
    let is_color = |value: &Value| value.as_u64().is_some_and(|number| number <= 0xff_ff_ff);
    let colored = embed.get("color").filter(|it| !is_color(it));
    colored.map(|_| ("color", "A number up to 16777215 is expected."))
}

/// Rows of buttons and menus within Discord's limits.
pub(crate) fn check_components(rows: &mut [Value]) -> Result<(), Refusal> {
    if rows.len() > 5 {
        return Err(Refusal::invalid(
            "components",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 5 in length.",
        ));
    }
    let mut seen = Vec::new();
    for (at, row) in rows.iter_mut().enumerate() {
        strip_nulls(row);
        if row["type"] != 1 {
            return Err(Refusal::invalid(
                format!("components.{at}.type"),
                "UNION_TYPE_CHOICES",
                "Value of field \"type\" must be 1.",
            ));
        }
        let Some(inner) = row["components"].as_array().filter(|it| (1..=5).contains(&it.len()))
        else {
            return Err(Refusal::invalid(
                format!("components.{at}.components"),
                "BASE_TYPE_BAD_LENGTH",
                "Must be between 1 and 5 in length.",
            ));
        };
        for (place, component) in inner.iter().enumerate() {
            let path = |name: &str| format!("components.{at}.components.{place}.{name}");
            if component["label"].as_str().is_some_and(|it| it.chars().count() > 80) {
                return Err(Refusal::too_long(path("label"), 80));
            }
            match (component["type"].as_u64(), component["style"].as_u64()) {
                (Some(2), Some(5)) if component["url"].is_string() => {
                    let url = component["url"].as_str().unwrap_or_default();
                    let is_link = ["http://", "https://", "discord://"];
                    if !is_link.iter().any(|it| url.starts_with(it)) || url.chars().count() > 512 {
                        let text = "Not a well formed URL.";
                        return Err(Refusal::invalid(path("url"), "URL_TYPE_INVALID_URL", text));
                    }
                    continue;
                }
                (Some(2), Some(5)) => {
                    return Err(Refusal::invalid(
                        path("url"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    ));
                }
                (Some(2), Some(1..=4)) => {
                    let has = |name: &str| !component[name].is_null() && component[name] != "";
                    if !has("label") && !has("emoji") {
                        let text = "A button needs a label or an emoji.";
                        return Err(Refusal::invalid(path("label"), "BASE_TYPE_REQUIRED", text));
                    }
                }
                (Some(3 | 5..=8), _) if inner.len() > 1 => {
                    let text = "A menu takes a row for itself.";
                    return Err(Refusal::invalid(
                        format!("components.{at}.components"),
                        "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
                        text,
                    ));
                }
                (Some(3 | 5..=8), _) => check_menu(component, &path)?,
                (Some(2), _) => {
                    return Err(Refusal::invalid(
                        path("style"),
                        "BASE_TYPE_CHOICES",
                        "Not a button style.",
                    ));
                }
                (_, _) => {
                    return Err(Refusal::invalid(
                        path("type"),
                        "UNION_TYPE_CHOICES",
                        "Not a component of a row.",
                    ));
                }
            }
            let id = component["custom_id"].as_str().unwrap_or_default();
            if id.is_empty() {
                return Err(Refusal::invalid(
                    path("custom_id"),
                    "BASE_TYPE_REQUIRED",
                    "A custom id is required",
                ));
            }
            if id.chars().count() > 100 {
                return Err(Refusal::too_long(path("custom_id"), 100));
            }
            if seen.contains(&id.to_owned()) {
                return Err(Refusal::invalid(
                    path("custom_id"),
                    "COMPONENT_CUSTOM_ID_DUPLICATED",
                    "Component custom id cannot be duplicated",
                ));
            }
            seen.push(id.to_owned());
        }
    }
    number_components(rows);
    Ok(())
}

/// A menu, in a message or a dialog.
fn check_menu(menu: &Value, path: &impl Fn(&str) -> String) -> Result<(), Refusal> {
    if menu["placeholder"].as_str().is_some_and(|it| it.chars().count() > 150) {
        return Err(Refusal::too_long(path("placeholder"), 150));
    }
    if menu["type"] != 3 {
        return Ok(());
    }
    let options = menu["options"].as_array().map_or(&[][..], Vec::as_slice);
    let bounds =
        |field: &str, text: &str| Refusal::invalid(path(field), "BASE_TYPE_BAD_LENGTH", text);
    if !(1..=25).contains(&options.len()) {
        return Err(bounds("options", "Must be between 1 and 25 in length."));
    }
    if menu["max_values"].as_u64().is_some_and(|most| most > options.len() as u64) {
        return Err(bounds("max_values", "Must not be more than there are options."));
    }
    let mut values = Vec::new();
    for (at, option) in options.iter().enumerate() {
        for (field, most) in [("label", 100), ("value", 100)] {
            check_text(&option[field], &path(&format!("options.{at}.{field}")), most)?;
        }
        if option["description"].as_str().is_some_and(|it| it.chars().count() > 100) {
            return Err(Refusal::too_long(path(&format!("options.{at}.description")), 100));
        }
        if values.contains(&&option["value"]) {
            let (code, text) =
                ("SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The value is used twice.");
            return Err(Refusal::invalid(path(&format!("options.{at}.value")), code, text));
        }
        values.push(&option["value"]);
    }
    Ok(())
}

/// A field of a dialog that text is written in.
fn check_input(input: &Value, path: &impl Fn(&str) -> String) -> Result<(), Refusal> {
    let length = |name: &str| input[name].as_str().map_or(0, |text| text.chars().count());
    for (field, most) in [("placeholder", 100), ("value", 4000)] {
        if length(field) > most {
            return Err(Refusal::too_long(path(field), most));
        }
    }
    let most = input["max_length"].as_u64().unwrap_or(4000);
    if !(1..=4000).contains(&most) || input["min_length"].as_u64().is_some_and(|least| least > most)
    {
        let text = "int value should be between 1 and 4000.";
        return Err(Refusal::invalid(path("max_length"), "NUMBER_TYPE_MAX", text));
    }
    if length("value") as u64 > most {
        return Err(Refusal::too_long(path("value"), usize::try_from(most).unwrap_or(4000)));
    }
    Ok(())
}

/// Gives menus their bounds, and every component without an id one, counted through the message as the platform does.
fn number_components(rows: &mut [Value]) {
    let mut next = 1;
    let mut number = |component: &mut Value| {
        let menu = matches!(component["type"].as_u64(), Some(3 | 5..=8));
        if let Some(object) = component.as_object_mut() {
            if menu {
                object.entry("min_values").or_insert(json!(1));
                object.entry("max_values").or_insert(json!(1));
            }
            object.entry("id").or_insert(json!(next));
            next += 1;
        }
    };
    for row in rows {
        number(row);
        // Rows hold several; a label in a dialog holds one.
        row.get_mut("component").into_iter().for_each(&mut number);
        let inner = row.get_mut("components").and_then(Value::as_array_mut);
        inner.into_iter().flatten().for_each(&mut number);
    }
}

/// A text within bounds, counted in characters.
fn check_text(value: &Value, path: &str, most: usize) -> Result<(), Refusal> {
    match value.as_str().map(|text| text.chars().count()) {
        None | Some(0) => {
            Err(Refusal::invalid(path, "BASE_TYPE_REQUIRED", "This field is required"))
        }
        Some(length) if length > most => Err(Refusal::too_long(path, most)),
        Some(_) => Ok(()),
    }
}

/// The components of a dialog that take something in, in rows of one or under labels.
pub(crate) fn inputs(dialog: &Value) -> impl Iterator<Item = &Value> {
    let rows = dialog["components"].as_array().into_iter().flatten();
    rows.filter_map(|row| match row["type"].as_u64() {
        Some(1) => row["components"].get(0),
        Some(18) => row.get("component"),
        _ => None,
    })
}

/// A dialog within Discord's limits.
pub(crate) fn check_dialog(dialog: &mut Value) -> Result<(), Refusal> {
    strip_nulls(dialog);
    check_text(&dialog["title"], "data.title", 45)?;
    check_text(&dialog["custom_id"], "data.custom_id", 100)?;
    let rows = dialog["components"].as_array().map_or(0, Vec::len);
    if !(1..=5).contains(&rows) {
        let text = "Must be between 1 and 5 in length.";
        return Err(Refusal::invalid("data.components", "BASE_TYPE_BAD_LENGTH", text));
    }
    let mut seen = Vec::new();
    for (at, input) in inputs(dialog).enumerate() {
        let path = |name: &str| format!("data.components.{at}.components.0.{name}");
        check_text(&input["custom_id"], &path("custom_id"), 100)?;
        if seen.contains(&&input["custom_id"]) {
            let text = "Component custom id cannot be duplicated";
            return Err(Refusal::invalid(
                path("custom_id"),
                "COMPONENT_CUSTOM_ID_DUPLICATED",
                text,
            ));
        }
        seen.push(&input["custom_id"]);
        match (input["type"].as_u64(), input["style"].as_u64()) {
            (Some(4), Some(1 | 2)) => check_input(input, &path)?,
            (Some(3 | 5..=8), _) => check_menu(input, &path)?,
            (Some(19 | 21..=23), _) => {}
            (Some(4), _) => {
                let text = "Value must be one of {1, 2}.";
                return Err(Refusal::invalid(path("style"), "BASE_TYPE_CHOICES", text));
            }
            (_, _) => {
                let text = "Not a component of a dialog.";
                return Err(Refusal::invalid(path("type"), "UNION_TYPE_CHOICES", text));
            }
        }
        if input["label"].as_str().is_some_and(|it| it.chars().count() > 45) {
            return Err(Refusal::too_long(path("label"), 45));
        }
    }
    if let Some(rows) = dialog["components"].as_array_mut() {
        number_components(rows);
    }
    Ok(())
}

/// Suggestions within Discord's limits.
pub(crate) fn check_suggestions(data: &Value) -> Result<(), Refusal> {
    let choices = data["choices"].as_array();
    let choices = choices.ok_or_else(|| {
        Refusal::invalid("data.choices", "BASE_TYPE_REQUIRED", "This field is required")
    })?;
    if choices.len() > 25 {
        let text = "Must be 25 or fewer in length.";
        return Err(Refusal::invalid("data.choices", "BASE_TYPE_MAX_LENGTH", text));
    }
    for (at, choice) in choices.iter().enumerate() {
        check_text(&choice["name"], &format!("data.choices.{at}.name"), 100)?;
        if choice["value"].as_str().is_some_and(|it| it.chars().count() > 100) {
            return Err(Refusal::too_long(format!("data.choices.{at}.value"), 100));
        }
    }
    Ok(())
}

/// Removes null members at every depth: clients write them, and stumble over reading them.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let kept: Map<String, Value> =
                std::mem::take(object).into_iter().filter(|(_, value)| !value.is_null()).collect();
            *object = kept;
            object.values_mut().for_each(strip_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_embeds_and_components_are_kept() {
        let mut long = vec![json!({"title": "x".repeat(257)})];
        assert!(
            matches!(check_embeds(&mut long), Err(Refusal::Invalid { field, .. }) if field == "embeds.0.title")
        );
        let mut sum = vec![json!({"description": "x".repeat(4000)}); 2];
        assert!(check_embeds(&mut sum).is_err());
        let button = json!({"type": 2, "style": 1, "label": "Go", "custom_id": "a"});
        let mut twice = vec![json!({"type": 1, "components": [button, button]})];
        assert!(check_components(&mut twice).is_err());
        let mut once = vec![json!({"type": 1, "components": [button]})];
        check_components(&mut once).unwrap();
        assert_eq!((&once[0]["id"], &once[0]["components"][0]["id"]), (&json!(1), &json!(2)));
    }
}
