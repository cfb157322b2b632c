//! A REST client for tests of the local guild.

use serde_json::Value;
use teams::local_guild::{Config, GuildInfo, Running, serve};

/// Serves a guild that keeps nothing.
pub(crate) async fn fresh() -> Running {
    serve(Config::default()).await.unwrap()
}

/// The key of the guild's page.
pub(crate) fn key_of(info: &GuildInfo) -> &str {
    info.page_url.split_once("?key=").unwrap().1
}

/// One caller: a bot or a person.
pub(crate) struct Caller {
    http: reqwest::Client,
    base: String,
    authorization: String,
}

impl Caller {
    /// The bot of that name.
    pub(crate) fn bot(info: &GuildInfo, name: &str) -> Caller {
        Caller::new(info, format!("Bot {}", info.bots[name].token))
    }

    /// The person of that name.
    pub(crate) fn person(info: &GuildInfo, name: &str) -> Caller {
        Caller::new(info, info.users[name].token.clone())
    }

    /// The bot of that token.
    pub(crate) fn token(info: &GuildInfo, token: &str) -> Caller {
        Caller::new(info, format!("Bot {token}"))
    }

    /// A person who comes in now, seen under that name.
    pub(crate) async fn newcomer(&self, info: &GuildInfo, name: &str, display: &str) -> Caller {
        let body = serde_json::json!({"name": name, "display": display});
        let made = self.ok("POST", "/_local/person", body).await;
        Caller::new(info, text(&made["token"]).to_owned())
    }

    fn new(info: &GuildInfo, authorization: String) -> Caller {
        Caller { http: reqwest::Client::new(), base: info.base_url.clone(), authorization }
    }

    /// A request, not yet sent; paths without `/_local` lie under the API's base.
    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("/_local") {
            format!("{}{path}", self.base)
        } else {
            format!("{}/api/v10{path}", self.base)
        };
        let method = method.parse().unwrap();
        self.http.request(method, url).header("authorization", &self.authorization)
    }

    /// Sends JSON; returns the status and the JSON that came back.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.request(method, path);
        if !body.is_null() {
            request = request.json(&body);
        }
        answer(request.send().await.unwrap()).await
    }

    /// Sends JSON; anything but success fails the test.
    pub(crate) async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, value) = self.call(method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {value}");
        value
    }
}

/// Status and JSON of a response.
pub(crate) async fn answer(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// The text of a JSON string.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
