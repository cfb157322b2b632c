//! What every REST handler reads from a request: who asks, path, query, body.

use std::collections::HashMap;
use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Multipart, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::local_guild::error::Refusal;
use crate::local_guild::guild::Guild;
use crate::local_guild::ids::Id;

/// What a handler that has nothing to tell gives back.
pub(crate) type EmptyReply = Result<StatusCode, Refusal>;

/// The bot that asks, by its `Authorization: Bot …` header.
pub(crate) struct Bot(pub(crate) Id);

impl FromRequestParts<Arc<Guild>> for Bot {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, guild: &Arc<Guild>) -> Result<Bot, Refusal> {
        let header = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bot ")).map(str::trim);
        let token = token.ok_or(Refusal::Unauthorized)?;
        guild
            .read(|state| state.user_by_token(token).filter(|user| user.bot).map(|user| user.id))
            .map(Bot)
            .ok_or(Refusal::Unauthorized)
    }
}

/// Path parameters; what is no snowflake is an invalid form.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<At<T>, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(At(value)),
            Err(error) => Err(Refusal::invalid("path", "NUMBER_TYPE_COERCE", error.body_text())),
        }
    }
}

/// Query parameters. Clients write booleans as `true` or `1`, and some begin with a stray `&`.
pub(crate) struct QueryParameters(HashMap<String, String>);

impl QueryParameters {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn yes(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| matches!(value, "true" | "1" | "True"))
    }

    pub(crate) fn id(&self, name: &str) -> Result<Option<Id>, Refusal> {
        let parse = |text: &str| {
            let bad = |_| Refusal::invalid(name, "NUMBER_TYPE_COERCE", "Not a snowflake.");
            text.parse().map_err(bad)
        };
        self.text(name).map(parse).transpose()
    }

    /// A point in time, as ISO 8601.
    pub(crate) fn time(&self, name: &str) -> Result<Option<DateTime<Utc>>, Refusal> {
        let parse = |text: &str| {
            // A plus sign in a query that was not escaped arrives as a space.
            let read = DateTime::parse_from_rfc3339(&text.replace(' ', "+"));
            let bad = |_| Refusal::invalid(name, "DATE_TIME_TYPE_PARSE", "Not an ISO 8601 time.");
            read.map(|it| it.with_timezone(&Utc)).map_err(bad)
        };
        self.text(name).map(parse).transpose()
    }

    /// A count within bounds.
    pub(crate) fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, Refusal> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
            let text = format!("int value should be between 1 and {most}.");
            Refusal::invalid(name, "NUMBER_TYPE_COERCE", text)
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<QueryParameters, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(map)) => Ok(QueryParameters(map)),
            Err(_) => Err(Refusal::invalid("query", "BASE_TYPE_BAD", "Not a query string.")),
        }
    }
}

/// A file sent along, `files[n]` in the form.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    /// The `n`, by which the JSON refers to it.
    pub(crate) number: usize,
    pub(crate) filename: String,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Bytes,
}

/// A body: JSON, or a form with `payload_json` and files. No body is an empty object.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    pub(crate) json: Value,
    pub(crate) files: Vec<Upload>,
}

impl Payload {
    /// The JSON as a type of ours.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_value(self.json.clone())
            .map_err(|error| Refusal::invalid("body", "BASE_TYPE_BAD", error.to_string()))
    }

    /// A member of the JSON object.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.json.get(name)
    }

    /// A text member; null counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// A text member that must be there, within a length in characters.
    pub(crate) fn name(&self, field: &str, limit: usize) -> Result<String, Refusal> {
        let text = self.text(field).map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Err(Refusal::invalid(field, "BASE_TYPE_REQUIRED", "This field is required"));
        }
        if text.chars().count() > limit {
            return Err(Refusal::too_long(field, limit));
        }
        Ok(text.to_owned())
    }
}

impl<S: Send + Sync + 'static> FromRequest<S> for Payload {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Payload, Refusal> {
        let kind = request.headers().get("content-type").and_then(|value| value.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("multipart/form-data")) {
            let form = Multipart::from_request(request, state).await;
            return read_form(form.map_err(|_| Refusal::BadJson)?).await;
        }
        let bytes: Bytes = request.extract().await.map_err(|_| Refusal::TooLarge)?;
        if bytes.is_empty() {
            return Ok(Payload { json: Value::Object(Map::new()), files: Vec::new() });
        }
        let json = serde_json::from_slice(&bytes).map_err(|_| Refusal::BadJson)?;
        Ok(Payload { json, files: Vec::new() })
    }
}

async fn read_form(mut form: Multipart) -> Result<Payload, Refusal> {
    let mut json = Value::Object(Map::new());
    let mut files = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|_| Refusal::TooLarge)? {
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(str::to_owned);
        let bytes = field.bytes().await.map_err(|_| Refusal::TooLarge)?;
        if name == "payload_json" {
            let sent: Value = serde_json::from_slice(&bytes).map_err(|_| Refusal::BadJson)?;
            json = sent;
        } else if let Some(filename) = filename {
            let number = name.strip_prefix("files[").and_then(|rest| rest.strip_suffix(']'));
            let number = number.and_then(|text| text.parse().ok()).unwrap_or(files.len());
            files.push(Upload { number, filename, content_type, bytes });
        } else if let Some(object) = json.as_object_mut() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            object.insert(name, Value::String(text));
        }
    }
    Ok(Payload { json, files })
}
