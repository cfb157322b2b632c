//! Rendering a template: strict about names, never escaping, because what is written is Markdown,
//! YAML or a prompt.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::lookup::AssetError;

/// Renders a template text. `name` is for errors only.
pub fn render(name: &str, source: &str, context: impl Serialize) -> Result<String, AssetError> {
    let failed = |error: minijinja::Error| AssetError::Template {
        name: name.to_owned(),
        message: format!("{error:#}"),
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build().map_err(failed)?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.render_named_str(name, source, Value::from(Serde(&context))).map_err(failed)
}
