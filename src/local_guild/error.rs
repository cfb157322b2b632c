//! Refusals in Discord's JSON form, and what can go wrong while starting.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::platform::disk::is_full;
use crate::platform::files::FileError;

/// Why the local guild cannot start or went down.
#[derive(Debug, thiserror::Error)]
pub enum GuildError {
    /// The port is taken or not allowed.
    #[error("cannot listen on 127.0.0.1:{port}: {source} (hint: choose another with --port, or 0)")]
    Listen {
        /// The port asked for.
        port: u16,
        /// The reason the system gave.
        source: std::io::Error,
    },
    /// The folder could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log could not be written or made durable.
    #[error("cannot write the guild's log: {0}")]
    Log(#[source] std::io::Error),
    /// There is no room for more.
    #[error("the guild's disk is full (hint: free some space; it goes on by itself)")]
    NoSpace,
    /// Another process serves this folder.
    #[error(
        "the guild in {} is served by another process{} (hint: stop that one first)",
        dir.display(),
        by.first().map(|by| format!(", {by}")).unwrap_or_default()
    )]
    Busy {
        /// The folder.
        dir: std::path::PathBuf,
        /// The processes that have it, as far as they can be seen.
        by: Vec<String>,
    },
    /// The log is damaged before its end.
    #[error("the guild's log is damaged in line {line}: {reason} (hint: move the folder aside)")]
    Damaged {
        /// Counted from one.
        line: usize,
        /// What does not parse.
        reason: String,
    },
}

/// What most routes answer.
pub(crate) type JsonReply = Result<Json<Value>, Refusal>;

/// A request that is not granted. Names and codes are those of Discord's public list of JSON error
/// codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("401: Unauthorized")]
    Unauthorized,
    #[error("404: Not Found")]
    NotFound,
    #[error("405: Method Not Allowed")]
    MethodNotAllowed,
    #[error("only requests from this machine's own pages and programs are served")]
    ForeignOrigin,
    #[error("Unknown Channel")]
    UnknownChannel,
    #[error("Unknown Guild")]
    UnknownGuild,
    #[error("Unknown Member")]
    UnknownMember,
    #[error("Unknown Message")]
    UnknownMessage,
    #[error("Unknown Role")]
    UnknownRole,
    #[error("Unknown Application")]
    UnknownApplication,
    #[error("Unknown User")]
    UnknownUser,
    #[error("Unknown Webhook")]
    UnknownWebhook,
    #[error("Unknown interaction")]
    UnknownInteraction,
    #[error("Unknown application command")]
    UnknownCommand,
    #[error("Maximum number of webhooks reached (15)")]
    TooManyWebhooks,
    #[error("Maximum number of guild roles reached (250)")]
    TooManyRoles,
    #[error("Maximum number of guild channels reached (500)")]
    TooManyChannels,
    #[error("Maximum number of pins reached for the channel (50)")]
    TooManyPins,
    #[error("Max number of daily application command creates has been reached (200)")]
    TooManyCommands,
    #[error("Request entity too large")]
    TooLarge,
    #[error("Interaction has already been acknowledged")]
    Acknowledged,
    #[error("Missing Access")]
    MissingAccess,
    #[error("Cannot execute action on this channel type")]
    WrongChannelType,
    #[error("Cannot edit a message authored by another user")]
    NotAuthor,
    #[error("Cannot send an empty message")]
    EmptyMessage,
    #[error("Cannot send messages in a non-text channel")]
    NonText,
    #[error("You can only bulk delete messages that are under 14 days old.")]
    TooOld,
    #[error("Invalid Role")]
    InvalidRole,
    #[error("Cannot reply without permission to read message history")]
    NoHistory,
    #[error("Missing Permissions")]
    MissingPermissions,
    #[error("Invalid Webhook Token provided")]
    WebhookToken,
    #[error("Thread is archived")]
    ThreadArchived,
    #[error("A thread has already been created for this message")]
    ThreadExists,
    #[error("Invalid Form Body")]
    Invalid { field: String, code: &'static str, text: String },
    #[error("The request body contains invalid JSON.")]
    BadJson,
    #[error("the guild cannot write to its disk; it accepts nothing more until it is restarted")]
    Storage,
    #[error("the disk is full: free some space there, and send it again")]
    NoSpace,
}

impl Refusal {
    /// What could not be kept.
    pub(crate) fn unkept(error: GuildError) -> Refusal {
        let is_full = match &error {
            GuildError::NoSpace => true,
            GuildError::File(file) => is_full(file),
            GuildError::Listen { .. }
            | GuildError::Log(_)
            | GuildError::Busy { .. }
            | GuildError::Damaged { .. } => false,
        };
        tracing::error!(%error, "the guild cannot keep what was sent");
        if is_full { Refusal::NoSpace } else { Refusal::Storage }
    }

    /// An invalid field; `field` is a dotted path such as `embeds.0.title`.
    pub(crate) fn invalid(
        field: impl Into<String>,
        code: &'static str,
        text: impl Into<String>,
    ) -> Refusal {
        Refusal::Invalid { field: field.into(), code, text: text.into() }
    }

    /// A field that is longer than allowed, counted in characters.
    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Refusal {
        Refusal::invalid(
            field,
            "BASE_TYPE_MAX_LENGTH",
            format!("Must be {limit} or fewer in length."),
        )
    }

    fn status_and_code(&self) -> (StatusCode, u32) {
        use StatusCode as S;
        match self {
            Refusal::Unauthorized => (S::UNAUTHORIZED, 40001),
            Refusal::NotFound => (S::NOT_FOUND, 0),
            Refusal::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, 0),
            Refusal::ForeignOrigin => (S::FORBIDDEN, 0),
            Refusal::UnknownChannel => (S::NOT_FOUND, 10003),
            Refusal::UnknownGuild => (S::NOT_FOUND, 10004),
            Refusal::UnknownMember => (S::NOT_FOUND, 10007),
            Refusal::UnknownMessage => (S::NOT_FOUND, 10008),
            Refusal::UnknownRole => (S::NOT_FOUND, 10011),
            Refusal::UnknownApplication => (S::NOT_FOUND, 10002),
            Refusal::UnknownUser => (S::NOT_FOUND, 10013),
            Refusal::UnknownWebhook => (S::NOT_FOUND, 10015),
            Refusal::UnknownInteraction => (S::NOT_FOUND, 10062),
            Refusal::UnknownCommand => (S::NOT_FOUND, 10063),
            Refusal::TooManyWebhooks => (S::BAD_REQUEST, 30007),
            Refusal::TooManyRoles => (S::BAD_REQUEST, 30005),
            Refusal::TooManyChannels => (S::BAD_REQUEST, 30013),
            Refusal::TooManyPins => (S::BAD_REQUEST, 30003),
            Refusal::TooManyCommands => (S::BAD_REQUEST, 30034),
            Refusal::TooLarge => (S::PAYLOAD_TOO_LARGE, 40005),
            Refusal::Acknowledged => (S::BAD_REQUEST, 40060),
            Refusal::MissingAccess => (S::FORBIDDEN, 50001),
            Refusal::WrongChannelType => (S::BAD_REQUEST, 50024),
            Refusal::NotAuthor => (S::FORBIDDEN, 50005),
            Refusal::EmptyMessage => (S::BAD_REQUEST, 50006),
            Refusal::NonText => (S::BAD_REQUEST, 50008),
            Refusal::TooOld => (S::BAD_REQUEST, 50034),
            Refusal::InvalidRole => (S::BAD_REQUEST, 50028),
            Refusal::NoHistory => (S::FORBIDDEN, 160_002),
            Refusal::MissingPermissions => (S::FORBIDDEN, 50013),
            Refusal::WebhookToken => (S::UNAUTHORIZED, 50027),
            Refusal::ThreadArchived => (S::BAD_REQUEST, 50083),
            Refusal::ThreadExists => (S::BAD_REQUEST, 160_004),
            Refusal::Invalid { .. } => (S::BAD_REQUEST, 50035),
            Refusal::BadJson => (S::BAD_REQUEST, 50109),
            Refusal::Storage => (S::INTERNAL_SERVER_ERROR, 0),
            Refusal::NoSpace => (S::INSUFFICIENT_STORAGE, 0),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code) = self.status_and_code();
        let mut body = json!({"message": self.to_string(), "code": code});
        if let Refusal::Invalid { field, code, text } = &self {
            let mut errors = json!({"_errors": [{"code": code, "message": text}]});
            for part in field.rsplit('.').filter(|part| !part.is_empty()) {
                errors = Value::Object([(part.to_owned(), errors)].into_iter().collect());
            }
            body["errors"] = errors;
        }
        (status, Json(body)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_invalid_field_is_named_by_its_path() {
        let response = Refusal::too_long("embeds.0.title", 256).into_response();
        assert_eq!(response.status(), 400);
        let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["code"], 50035);
        assert_eq!(
            body["errors"]["embeds"]["0"]["title"]["_errors"][0]["code"],
            "BASE_TYPE_MAX_LENGTH"
        );
    }
}
