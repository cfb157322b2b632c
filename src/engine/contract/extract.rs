//! Finding the result in what an agent printed (`spec/teams.md` 8.2).

use serde_json::{Map, Value};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// Nothing but blanks.
    #[error("empty response: expected one json object")]
    Empty,
    /// Text without a JSON object.
    #[error("no json object in the response: end it with the result object")]
    NoObject,
}

/// The first JSON object of a text: the whole text, else the first place where one can be read
/// (inside a fence or not, after a malformed one or not).
///
/// # Errors
/// When the text is blank or holds no object.
pub fn extract_json_object(text: &str) -> Result<Map<String, Value>, ExtractError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(ExtractError::Empty);
    }
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        return Ok(object);
    }
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = rest.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(Value::Object(object))) = values.next() {
            return Ok(object);
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    Err(ExtractError::NoObject)
}
