//! Discord's OpenAPI document as a judge of answers (`spec/discord.md` 4). It is 3.1, so its schemas are
//! plain JSON Schema 2020-12.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// The methods that occur.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An operation by method and path template, such as `("GET", "/users/{user_id}")`.
pub(crate) type Operation = (String, String);

pub(crate) struct Document {
    document: Value,
    /// By the schema's text: many operations share one.
    compiled: BTreeMap<String, jsonschema::Validator>,
}

impl Document {
    /// The document beside the clone. `None` skips the test, unless `TEAMS_NO_SKIP` forbids skipping.
    #[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
    pub(crate) fn open() -> Option<Document> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/discord/openapi.json");
        match std::fs::read(&path) {
            Ok(bytes) => Some(Document {
                document: serde_json::from_slice(&bytes).unwrap(),
                compiled: BTreeMap::new(),
            }),
            Err(error) => {
                let text = format!("{} cannot be read: {error}", path.display());
                assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "{text}");
                eprintln!("skipped: {text}");
                None
            }
        }
    }

    fn paths(&self) -> &serde_json::Map<String, Value> {
        self.document["paths"].as_object().unwrap()
    }

    /// Every operation that the document names.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let all = self.paths().iter().flat_map(|(path, item)| {
            let named = METHODS.into_iter().filter(|method| item.get(method).is_some());
            named.map(|method| (method.to_uppercase(), path.clone()))
        });
        all.collect()
    }

    /// The operation that a request belongs to; a literal segment beats a parameter.
    pub(crate) fn operation(&self, method: &str, path: &str) -> Option<Operation> {
        let path = path.split('?').next().unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |template: &&String| {
            let wanted: Vec<&str> = template.split('/').collect();
            wanted.len() == parts.len()
                && wanted.iter().zip(&parts).all(|(it, part)| it.starts_with('{') || it == part)
        };
        let found = self
            .paths()
            .iter()
            .filter(|(_, item)| item.get(method.to_lowercase()).is_some())
            .map(|(template, _)| template)
            .filter(fits)
            .min_by_key(|template| template.matches('{').count())?;
        Some((method.to_owned(), found.clone()))
    }

    /// What is wrong with an answer; nothing if the document allows it.
    pub(crate) fn judge(
        &mut self,
        (method, path): &Operation,
        status: u16,
        body: &Value,
    ) -> Vec<String> {
        let item = &self.document["paths"][path][method.to_lowercase()]["responses"];
        let named = item.get(status.to_string());
        let response = match (named, status) {
            (Some(found), _) => found,
            (None, 400..500) => &item["4XX"],
            (None, _) => return vec![format!("status {status} is not one of this operation")],
        };
        let response = match response["$ref"].as_str() {
            Some(reference) => self.document.pointer(reference.trim_start_matches('#')).unwrap(),
            None => response,
        };
        let Some(schema) = response.pointer("/content/application~1json/schema") else {
            let empty = body.is_null();
            return if empty { Vec::new() } else { vec!["a body where none belongs".to_owned()] };
        };
        let schema = schema.clone();
        self.compare(&schema, body)
    }

    /// What is wrong with an object of a schema by name; the gateway sends what REST answers.
    pub(crate) fn judge_object(&mut self, name: &str, object: &Value) -> Vec<String> {
        self.compare(&json!({"$ref": format!("#/components/schemas/{name}")}), object)
    }

    fn compare(&mut self, schema: &Value, body: &Value) -> Vec<String> {
        let key = schema.to_string();
        if !self.compiled.contains_key(&key) {
            let root = json!({"allOf": [schema], "components": self.document["components"]});
            let options = jsonschema::options().should_validate_formats(false);
            self.compiled.insert(key.clone(), options.build(&root).unwrap());
        }
        let body = &relaxed(body);
        let errors = self.compiled[&key].iter_errors(body);
        errors.map(|error| format!("{} at {}", error, error.instance_path())).collect()
    }
}

/// Where the document contradicts what the platform says in words and does, its words win:
/// the codes of form errors are texts, and a callback is told of its response also where the response
/// is a deferral or a dialog.
fn relaxed(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(errors) = body.get_mut("errors") {
        numbered(errors);
    }
    let kind = body.pointer("/resource/type").and_then(Value::as_u64);
    if body.get("interaction").is_some() && kind.is_some_and(|kind| !matches!(kind, 4 | 7 | 12)) {
        body.as_object_mut().unwrap().remove("resource");
    }
    body
}

fn numbered(errors: &mut Value) {
    for (name, value) in errors.as_object_mut().into_iter().flatten() {
        if name == "_errors" {
            for error in value.as_array_mut().into_iter().flatten() {
                assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
                error["code"] = json!(0);
            }
        } else {
            numbered(value);
        }
    }
}
