//! From an [`Outgoing`] to the bodies that Discord takes: words, parts, buttons, nonces, mentions. Pure.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::assets::catalog::{Catalog, CatalogError, Embed, Rendered};
use crate::discord::outbound_files::{self, Outbound};
use crate::discord::rest::Upload;
use crate::discord::split::{MAX_PARTS, MESSAGE_LIMIT, beginning, length, shorten, split};
use crate::domain::ids::{MessageId, OutgoingId, UserId};
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct, ChoiceMenu, Content, LaneMenu, Menu};
use crate::domain::routes::Lane;

/// Buttons in a row.
const ROW: usize = 5;
/// The longest text in a list of choices, in UTF-16 units.
const MENU_TEXT: usize = 100;

/// Units of a text that is too long to read here, before the file with all of it.
const BEGINNING: usize = 1_400;

/// A message in the parts that it is sent in.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The texts; at least one, empty only where there is a card.
    pub(crate) texts: Vec<String>,
    /// The card, in the last part.
    pub(crate) embed: Option<Value>,
    /// Rows of buttons, in the last part.
    pub(crate) components: Vec<Value>,
    /// Files, by the part that they go out with.
    pub(crate) files: BTreeMap<usize, Vec<Upload>>,
    /// The whole of what the words show in part, until it is attached.
    whole: Vec<Upload>,
    /// The message answered, by the first part.
    pub(crate) reply_to: Option<MessageId>,
    /// The one person who may be notified, by the first part.
    pub(crate) mention: Option<UserId>,
}

impl Parts {
    /// Cuts a rendered message into parts. `header` stands in bold above the first one; `mentioned` puts
    /// the mention before the words (an answer notifies without it). A text of too many parts becomes its
    /// beginning and a file with all of it. Files are named and go out only after [`Parts::attach`].
    pub(crate) fn new(
        rendered: &Rendered,
        header: Option<&str>,
        mentioned: Option<UserId>,
    ) -> Parts {
        let mut text = String::new();
        if let Some(user) = mentioned {
            text.push_str(&format!("<@{user}> "));
        }
        if let Some(name) = header {
            text.push_str(&format!("**{name}**\n"));
        }
        text.push_str(&rendered.text);
        let mut whole: Vec<Upload> = Vec::new();
        for file in &rendered.whole {
            // Two of one message may have one name.
            let same = |name: &str| whole.iter().any(|it| it.filename == name);
            let mut filename = file.name.clone();
            while same(&filename) {
                filename.insert_str(0, "more-");
            }
            whole.push(Upload { filename, bytes: file.text.clone().into_bytes() });
        }
        let texts = split(&text, MESSAGE_LIMIT, MAX_PARTS).unwrap_or_else(|| {
            let bytes = rendered.text.clone().into_bytes();
            whole.push(Upload { filename: "message.md".to_owned(), bytes });
            vec![format!("{}\n…", beginning(&text, BEGINNING))]
        });
        Parts {
            texts,
            files: BTreeMap::new(),
            whole,
            embed: rendered.embed.as_ref().map(embed),
            components: Vec::new(),
            reply_to: None,
            mention: None,
        }
    }

    /// Adds files, the whole texts first: the first lot goes with the last words, each further one with a
    /// part of its own. What could not be attached is said.
    pub(crate) fn attach(
        &mut self,
        outbound: Outbound,
        catalog: &Catalog,
        language: Language,
    ) -> Result<(), CatalogError> {
        let say = |key: &str, values: Value| {
            let values = values.as_object().cloned().unwrap_or_default();
            let content = Content { key: key.to_owned(), values, language };
            catalog.render(&content).map(|it| it.text)
        };
        let Outbound { mut lots, too_much, missing } = outbound;
        let whole = std::mem::take(&mut self.whole);
        if !whole.is_empty() {
            let names: Vec<&str> = whole.iter().map(|file| file.filename.as_str()).collect();
            let said = say("text.whole", json!({ "files": names }))?;
            self.add_note(&format!("-# {}", shorten(&said, 400)));
            let more = lots.first().map_or(&[][..], Vec::as_slice);
            if outbound_files::fit_together(&whole, more) {
                let first = lots.first_mut().map(std::mem::take).unwrap_or_default();
                let both = whole.into_iter().chain(first).collect();
                match lots.first_mut() {
                    Some(lot) => *lot = both,
                    None => lots.push(both),
                }
            } else {
                lots.insert(0, whole);
            }
        }
        for (key, files) in [("files.too_much", too_much), ("files.missing", missing)] {
            if !files.is_empty() {
                self.add_note(&say(key, json!({ "files": files }))?);
            }
        }
        let count: usize = lots.iter().map(Vec::len).sum();
        let mut from = 1;
        for (at, lot) in lots.into_iter().enumerate() {
            let to = from + lot.len() - 1;
            let last = self.texts.len() - 1;
            if at == 0 && !self.files.contains_key(&last) {
                self.files.insert(last, lot);
            } else {
                let text = say("files.part", json!({"from": from, "to": to, "count": count}))?;
                self.files.insert(self.texts.len(), lot);
                self.texts.push(text);
            }
            from = to + 1;
        }
        Ok(())
    }

    /// Adds a line to the last words, or a part where it has no room there.
    fn add_note(&mut self, note: &str) {
        let note = shorten(note, MESSAGE_LIMIT);
        match self.texts.last_mut() {
            Some(last) if length(last) + length(&note) < MESSAGE_LIMIT => {
                if !last.is_empty() {
                    last.push('\n');
                }
                last.push_str(&note);
            }
            Some(_) | None => self.texts.push(note),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.embed.is_none()
            && self.files.is_empty()
            && self.texts.iter().all(|text| text.trim().is_empty())
    }

    /// The body of one part, without nonce.
    pub(crate) fn body(&self, at: usize) -> Map<String, Value> {
        let text = self.texts.get(at).map(String::as_str).unwrap_or_default();
        debug_assert!(length(text) <= MESSAGE_LIMIT, "parts are cut to the limit");
        let (first, last) = (at == 0, at + 1 == self.texts.len());
        let mut body = Map::new();
        body.insert("content".to_owned(), json!(text));
        let mut mentions = json!({"parse": []});
        if first && let Some(user) = self.mention {
            mentions["users"] = json!([user.to_string()]);
            mentions["replied_user"] = json!(self.reply_to.is_some());
        }
        body.insert("allowed_mentions".to_owned(), mentions);
        if first && let Some(original) = self.reply_to {
            let reference =
                json!({"message_id": original.to_string(), "fail_if_not_exists": false});
            body.insert("message_reference".to_owned(), reference);
        }
        if last {
            if let Some(embed) = &self.embed {
                body.insert("embeds".to_owned(), json!([embed]));
            }
            if !self.components.is_empty() {
                body.insert("components".to_owned(), json!(self.components));
            }
        }
        body
    }

    /// The body that replaces an existing message; buttons that are no longer there are taken away.
    pub(crate) fn edit(&self) -> Value {
        let mut body = self.body(0);
        body.remove("message_reference");
        body.entry("embeds").or_insert_with(|| json!([]));
        body.entry("components").or_insert_with(|| json!([]));
        Value::Object(body)
    }
}

/// The nonce of a part: 22 characters for the uuid and up to three for the part. Discord takes 25.
pub(crate) fn nonce(id: &OutgoingId, part: usize) -> String {
    let bytes = match uuid::Uuid::parse_str(id.as_str()) {
        Ok(uuid) => *uuid.as_bytes(),
        Err(_) => {
            // Ids of older workspaces need not be uuids; a digest serves as well.
            use sha1::{Digest as _, Sha1};
            let digest = Sha1::digest(id.as_str());
            std::array::from_fn(|at| digest[at])
        }
    };
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    format!("{text}{}", part % 1_000)
}

fn embed(embed: &Embed) -> Value {
    let mut value = json!({"title": embed.title, "color": embed.color});
    if !embed.description.is_empty() {
        value["description"] = json!(embed.description);
    }
    if !embed.fields.is_empty() {
        value["fields"] = json!(embed.fields);
    }
    if !embed.footer.is_empty() {
        value["footer"] = json!({"text": embed.footer});
    }
    value
}

/// Rows of buttons with labels in the reader's language. A button whose id would be too long is left
/// out; ids of ours never are.
pub(crate) fn components(buttons: &[Button], catalog: &Catalog, language: Language) -> Vec<Value> {
    let buttons: Vec<Value> = buttons
        .iter()
        .filter(|button| button.custom_id().len() <= 100)
        .take(ROW * ROW)
        .map(|button| {
            let style = match button.act {
                ButtonAct::Retry
                | ButtonAct::UseChecks
                | ButtonAct::TryWithWords
                | ButtonAct::AsSprint
                | ButtonAct::Split => 1,
                ButtonAct::Cancel
                | ButtonAct::Question
                | ButtonAct::Guide
                | ButtonAct::Answer
                | ButtonAct::Together
                | ButtonAct::Lane
                | ButtonAct::Choose
                | ButtonAct::YouDecide
                | ButtonAct::RequestChanges
                | ButtonAct::Skip
                | ButtonAct::SkipRequest
                | ButtonAct::Pause
                | ButtonAct::SplitWork
                | ButtonAct::Blocked => 2,
                ButtonAct::Approve | ButtonAct::Pass => 3,
                ButtonAct::Reject | ButtonAct::ApproveAnyway | ButtonAct::Issue => 4,
            };
            let label = catalog.label(&format!("button.{}", button.act.as_str()), language);
            json!({"type": 2, "style": style, "label": label, "custom_id": button.custom_id()})
        })
        .collect();
    buttons.chunks(ROW).map(|row| json!({"type": 1, "components": row})).collect()
}

/// The row with a list to choose from.
pub(crate) fn menu(menu: &Menu, catalog: &Catalog, language: Language) -> Value {
    match menu {
        Menu::Choice(choice) => choice_menu(choice, catalog, language),
        Menu::Lane(lanes) => lane_menu(lanes, catalog, language),
    }
}

/// The row with the lanes that a person may choose from.
pub(crate) fn lane_menu(menu: &LaneMenu, catalog: &Catalog, language: Language) -> Value {
    let lanes = Lane::ALL.into_iter().filter(|lane| *lane != Lane::Answer);
    let option = |lane: Lane| {
        json!({
            "label": catalog.label(&format!("lane.{lane}"), language),
            "description": catalog.label(&format!("lane_about.{lane}"), language),
            "value": lane.as_str(),
            "default": lane == menu.chosen,
        })
    };
    let id = Button { act: ButtonAct::Lane, subject: menu.request_id.to_string(), version: 0 };
    let select = json!({
        "type": 3, "custom_id": id.custom_id(),
        "placeholder": catalog.label("button.lane", language),
        "options": lanes.map(option).collect::<Vec<_>>(),
    });
    json!({"type": 1, "components": [select]})
}

/// The row with the options of a question, and the one that leaves it to the planner.
fn choice_menu(menu: &ChoiceMenu, catalog: &Catalog, language: Language) -> Value {
    let id = Button { act: ButtonAct::Choose, subject: menu.subject.clone(), version: 0 };
    let option = |(option, place): (&String, usize)| json!({ "label": shorten(option, MENU_TEXT), "value": place.to_string() });
    let mut options: Vec<Value> = menu.options.iter().zip(1..).map(option).collect();
    options.push(json!({
        "label": catalog.label("button.you_decide", language),
        "description": shorten(&menu.assumption, MENU_TEXT),
        "value": "0",
    }));
    let select = json!({
        "type": 3, "custom_id": id.custom_id(), "placeholder": shorten(&menu.label, MENU_TEXT),
        "options": options,
    });
    json!({"type": 1, "components": [select]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::catalog::Whole;

    fn words(text: &str) -> Rendered {
        Rendered { text: text.to_owned(), ..Rendered::default() }
    }

    #[test]
    fn nonces_fit_and_differ_by_part_and_message() {
        let one = OutgoingId::parse("019a3b7e-0000-7000-8000-000000000001").unwrap();
        let two = OutgoingId::parse("019a3b7e-0000-7000-8000-000000000002").unwrap();
        assert_eq!(nonce(&one, 0).len(), 23);
        assert_eq!(nonce(&one, 999).len(), 25);
        assert_ne!(nonce(&one, 0), nonce(&one, 1));
        assert_ne!(nonce(&one, 0), nonce(&two, 0));
        assert_eq!(nonce(&one, 3), nonce(&one, 3));
        assert!(nonce(&OutgoingId::parse("old-id").unwrap(), 0).len() <= 25);
    }

    #[test]
    fn nobody_is_notified_unless_meant() {
        let mut parts = Parts::new(&words("hi @everyone <@1>"), None, None);
        assert_eq!(parts.body(0)["allowed_mentions"], json!({"parse": []}));
        parts.mention = Some(UserId(7));
        parts.reply_to = Some(MessageId(9));
        assert_eq!(
            parts.body(0)["allowed_mentions"],
            json!({"parse": [], "users": ["7"], "replied_user": true})
        );
        assert_eq!(parts.body(0)["message_reference"]["message_id"], "9");
    }

    #[test]
    fn extras_stand_where_they_belong() {
        let mut parts = Parts::new(&words(&"x".repeat(4_500)), Some("Planner"), Some(UserId(7)));
        parts.reply_to = Some(MessageId(9));
        parts.components = vec![json!({})];
        assert_eq!(parts.texts.len(), 3);
        assert!(parts.texts[0].starts_with("[1/3]\n<@7> **Planner**\nxxx"));
        assert!(parts.body(0).contains_key("message_reference"));
        assert!(!parts.body(0).contains_key("components"));
        assert!(!parts.body(2).contains_key("message_reference"));
        assert!(parts.body(2).contains_key("components"));
        assert_eq!(parts.edit()["embeds"], json!([]));
    }

    #[test]
    fn a_text_of_a_hundred_parts_is_a_beginning_and_a_file() {
        let text = "word ".repeat(40_000);
        let mut parts = Parts::new(&words(&text), None, Some(UserId(7)));
        let catalog = Catalog::builtin().unwrap();
        parts.attach(Outbound::default(), &catalog, Language::En).unwrap();
        assert_eq!(parts.texts.len(), 1);
        assert!(
            length(&parts.texts[0]) <= MESSAGE_LIMIT && parts.texts[0].starts_with("<@7> word")
        );
        assert!(parts.texts[0].ends_with("\n…\n-# The whole text is attached: `message.md`"));
        let file = &parts.files[&0][0];
        assert_eq!((file.filename.as_str(), &*file.bytes), ("message.md", text.as_bytes()));
    }

    #[test]
    fn a_whole_text_goes_before_the_other_files() {
        let whole = |name: &str| Whole { name: name.to_owned(), text: "all".to_owned() };
        let both = vec![whole("report.md"), whole("report.md")];
        let rendered = Rendered { text: "some".to_owned(), embed: None, whole: both };
        let file = Upload { filename: "plan.md".to_owned(), bytes: vec![1] };
        let outbound = Outbound { lots: vec![vec![file]], ..Outbound::default() };
        let mut parts = Parts::new(&rendered, None, None);
        parts.attach(outbound, &Catalog::builtin().unwrap(), Language::En).unwrap();
        let names: Vec<&str> = parts.files[&0].iter().map(|it| it.filename.as_str()).collect();
        assert_eq!(names, ["report.md", "more-report.md", "plan.md"]);
        let said = "some\n-# The whole text is attached: `report.md`, `more-report.md`";
        assert_eq!(parts.texts, [said]);
    }

    #[test]
    fn files_go_out_in_lots_and_what_does_not_is_said() {
        let file = |name: &str| Upload { filename: name.to_owned(), bytes: vec![1] };
        let outbound = Outbound {
            lots: vec![vec![file("a"), file("b")], vec![file("c")]],
            too_much: vec!["film.mp4 (31 MiB)".to_owned()],
            missing: Vec::new(),
        };
        let catalog = Catalog::builtin().unwrap();
        let mut parts = Parts::new(&words("look"), None, None);
        parts.attach(outbound, &catalog, Language::En).unwrap();
        assert_eq!(parts.texts.len(), 2);
        assert!(parts.texts[0].starts_with("look\nNot attached"), "{}", parts.texts[0]);
        assert!(parts.texts[0].contains("`film.mp4 (31 MiB)`"));
        assert_eq!(parts.texts[1], "Files 3 to 3 of 3");
        assert_eq!((parts.files[&0].len(), parts.files[&1].len()), (2, 1));
        // Nothing but what cannot be attached is still something to say.
        let mut parts = Parts::new(&words(""), None, None);
        let gone = Outbound { missing: vec!["x".to_owned()], ..Outbound::default() };
        parts.attach(gone, &catalog, Language::Ko).unwrap();
        assert!(!parts.is_empty());
    }
}
