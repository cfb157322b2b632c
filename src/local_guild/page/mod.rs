//! Static answers: the page's files, attachments, avatars; and who may ask at all.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::error::Refusal;
use super::gateway;
use super::guild::{Guild, GuildState};
use super::ids::Id;
use super::rest::body::At;

/// Scripts and styles from here alone, so that nothing written in a message can run or call out.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: \
                      blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files by path.
const FILES: [(&str, &str, &str); 23] = [
    ("index.html", "text/html; charset=utf-8", include_str!("index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("style.css")),
    ("message.css", "text/css; charset=utf-8", include_str!("message.css")),
    ("form.css", "text/css; charset=utf-8", include_str!("form.css")),
    ("icon.svg", "image/svg+xml", include_str!("icon.svg")),
    ("app.js", JAVASCRIPT, include_str!("app.js")),
    ("api.js", JAVASCRIPT, include_str!("api.js")),
    ("store.js", JAVASCRIPT, include_str!("store.js")),
    ("words.js", JAVASCRIPT, include_str!("words.js")),
    ("dom.js", JAVASCRIPT, include_str!("dom.js")),
    ("markdown.js", JAVASCRIPT, include_str!("markdown.js")),
    ("message.js", JAVASCRIPT, include_str!("message.js")),
    ("log.js", JAVASCRIPT, include_str!("log.js")),
    ("sidebar.js", JAVASCRIPT, include_str!("sidebar.js")),
    ("commands.js", JAVASCRIPT, include_str!("commands.js")),
    ("menu.js", JAVASCRIPT, include_str!("menu.js")),
    ("morph.js", JAVASCRIPT, include_str!("morph.js")),
    ("pressing.js", JAVASCRIPT, include_str!("pressing.js")),
    ("dialog.js", JAVASCRIPT, include_str!("dialog.js")),
    ("pick.js", JAVASCRIPT, include_str!("pick.js")),
    ("walk.js", JAVASCRIPT, include_str!("walk.js")),
    ("composer.js", JAVASCRIPT, include_str!("composer.js")),
    ("invite.js", JAVASCRIPT, include_str!("invite.js")),
];

/// Everything that is neither REST nor the local side.
pub(crate) fn routes() -> Router<Arc<Guild>> {
    let mut router = Router::new()
        .route("/", get(root))
        .route("/gateway", get(root))
        .route("/resume", get(root))
        .route("/attachments/{channel}/{id}/{name}", get(attachment))
        .route("/avatars/{id}/{file}", get(avatar));
    for (path, kind, text) in FILES {
        router = router.route(&format!("/{path}"), get(move || async move { file(kind, text) }));
    }
    router
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

/// The page for a browser, the gateway for a bot: both live at the root.
async fn root(State(guild): GuildState, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let wanted = gateway::ConnectOptions::new(query);
    match WebSocketUpgrade::from_request_parts(&mut parts, &guild).await {
        Ok(upgrade) => upgrade.on_upgrade(move |socket| gateway::serve(guild, socket, wanted)),
        Err(_) => {
            let (_, kind, text) = FILES[0];
            file(kind, text)
        }
    }
}

/// Image formats that a browser may show in place; anything else is downloaded, so that a file can
/// never act as a page of this server.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

async fn attachment(
    State(guild): GuildState,
    At((channel, id, _name)): At<(Id, Id, String)>,
) -> Result<Response, Refusal> {
    let found = guild.read(|state| {
        let mut files = state.messages_in(channel).flat_map(|message| &message.attachments);
        let sent = files.find(|file| file.id == id).cloned();
        sent.or_else(|| {
            // A file that came with a command belongs to no message.
            let mut all = state.interactions.values().filter(|it| it.channel == channel);
            all.find_map(|it| it.kind.file(id))
        })
    });
    let found = found.ok_or(Refusal::NotFound)?;
    let bytes = guild.blobs.get(&id.to_string()).ok_or(Refusal::NotFound)?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_str(&found.content_type);
    let fallback = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(fallback));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    if !SHOWN.contains(&found.content_type.as_str()) {
        let value = format!("attachment; filename=\"{}\"", found.filename);
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
    }
    Ok(response)
}

async fn avatar(
    State(guild): GuildState,
    At((_id, file)): At<(Id, String)>,
) -> Result<Response, Refusal> {
    let key = file.split('.').next().unwrap_or_default();
    // Digests have 32 characters; attachments, named by number, are not served here.
    let bytes = (key.len() == 32).then(|| guild.blobs.get(key)).flatten();
    let bytes = bytes.ok_or(Refusal::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox"),
    ];
    Ok((headers, bytes).into_response())
}

/// Whether `host` or `host:port` names this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "127.0.0.1" | "localhost" | "::1")
}

fn comes_from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str());
    let host = matches!(text(header::HOST), Some(Ok(host)) if is_loopback(host));
    let origin = match text(header::ORIGIN) {
        None => true,
        Some(Ok(origin)) => origin.strip_prefix("http://").is_some_and(is_loopback),
        Some(Err(_)) => false,
    };
    host && origin
}

/// Turns away what a foreign page sends, also when its name was made to point at this machine.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    if comes_from_here(request.headers()) {
        next.run(request).await
    } else {
        let mut response = Refusal::ForeignOrigin.into_response();
        *response.status_mut() = StatusCode::FORBIDDEN;
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_served() {
        let ask = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            comes_from_here(&headers)
        };
        assert!(ask("127.0.0.1:4000", None));
        assert!(ask("localhost:4000", Some("http://localhost:4000")));
        assert!(ask("[::1]:4000", None));
        assert!(!ask("evil.example:4000", None));
        assert!(!ask("127.0.0.1.evil.example", None));
        assert!(!ask("127.0.0.1:4000", Some("http://evil.example")));
        assert!(!ask("127.0.0.1:4000", Some("null")));
    }
}
