//! Where an invite link leads: a page that asks whether a bot may join, and the button on it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::caller::Caller;
use super::error::Refusal;
use super::guild::{Guild, GuildState};
use super::ids::Id;
use super::permission::NAMES;
use super::rest::applications;
use super::rest::body::QueryParameters;

/// The one script sends the one form back to here.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The routes of this file. The path is Discord's, so that a link differs in its host alone.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    Router::new()
        .route("/oauth2/authorize", get(ask).post(grant))
        .route("/oauth2/authorize.css", get(style))
        .route("/api/oauth2/authorize", get(ask).post(grant))
}

/// The link that invites an application.
pub(crate) fn invite_link(base: &str, application: Id, permissions: Option<u64>) -> String {
    let rights = permissions.map(|it| format!("&permissions={it}")).unwrap_or_default();
    format!(
        "{base}/oauth2/authorize?client_id={application}&scope=bot+applications.commands{rights}"
    )
}

/// What a link asks for: which application, and its rights.
fn asked_for(guild: &Guild, asked: &QueryParameters) -> Result<(Id, String, u64), Refusal> {
    let id = asked.id("client_id")?.ok_or(Refusal::UnknownApplication)?;
    let scopes = asked.text("scope").unwrap_or_default();
    if !scopes.split([' ', '+']).any(|scope| scope == "bot") {
        return Err(Refusal::invalid("scope", "BASE_TYPE_CHOICES", "The scope must have \"bot\"."));
    }
    let rights = match asked.text("permissions") {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            Refusal::invalid("permissions", "NUMBER_TYPE_COERCE", "A number is expected.")
        })?,
    };
    guild.read(|state| {
        let wanted = asked.id("guild_id")?;
        if let Some(wanted) = wanted {
            state.check_guild(wanted)?;
        }
        let bot =
            state.users.get(&id).filter(|user| user.bot).ok_or(Refusal::UnknownApplication)?;
        Ok((id, bot.display.clone(), rights))
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn page(title: &str, body: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><link rel=\"stylesheet\" \
         href=\"/style.css\"><link rel=\"stylesheet\" \
         href=\"/oauth2/authorize.css\"><main class=\"authorize\"><h1>{title}</h1>{body}</main></html>"
    );
    (headers, text).into_response()
}

async fn style() -> Response {
    let text = include_str!("page/authorize.css");
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], text).into_response()
}

async fn ask(State(guild): GuildState, asked: QueryParameters) -> Result<Response, Refusal> {
    let (id, name, rights) = asked_for(&guild, &asked)?;
    let place = guild.read(|state| state.meta().map(|meta| meta.name.clone()))?;
    let names = NAMES.iter().filter(|(_, bit)| rights & bit != 0);
    let list: String = names
        .map(|(name, _)| format!("<li>{}</li>", name.replace('_', " ").to_lowercase()))
        .collect();
    let list = if list.is_empty() { "<li>nothing beyond everyone</li>".to_owned() } else { list };
    let link = invite_link("", id, Some(rights)).replace('&', "&amp;");
    let (name, place) = (escaped(&name), escaped(&place));
    Ok(page(
        &format!("{name} would like to join {place}"),
        &format!(
            "<p>It asks for:</p><ul>{list}</ul><form method=\"post\" action=\"{link}\">\
             <button>Authorize</button></form><script type=\"module\" src=\"/invite.js\"></script>"
        ),
    ))
}

async fn grant(
    State(guild): GuildState,
    _operator: Caller,
    headers: HeaderMap,
    asked: QueryParameters,
) -> Result<Response, Refusal> {
    let (id, name, rights) = asked_for(&guild, &asked)?;
    guild.change(|draft| applications::join(draft, id, rights))?;
    let html = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    if html.is_some_and(|it| it.contains("text/html")) {
        let text = "<p>You can close this page.</p><p><a href=\"/\">To the guild</a></p>";
        return Ok(page(&format!("{} has joined", escaped(&name)), text));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
