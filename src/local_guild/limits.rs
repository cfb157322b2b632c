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
                (Some(2), Some(5)) if component["url"].is_string() => continue,
                (Some(2), Some(5)) => {
                    return Err(Refusal::invalid(
                        path("url"),
                        "BASE_TYPE_REQUIRED",
                        "This field is required",
                    ));
                }
                (Some(2), Some(1..=4)) | (Some(3..=8), _) => {}
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

/// Gives every component without an id one, counted through the message as the platform does.
fn number_components(rows: &mut [Value]) {
    let mut next = 1;
    let mut number = |component: &mut Value| {
        if let Some(object) = component.as_object_mut() {
            object.entry("id").or_insert(json!(next));
            next += 1;
        }
    };
    for row in rows {
        number(row);
        let inner = row.get_mut("components").and_then(Value::as_array_mut);
        inner.into_iter().flatten().for_each(&mut number);
    }
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
