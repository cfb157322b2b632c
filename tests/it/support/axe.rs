//! axe-core in the page: what people who hear a page or walk it by keyboard would stumble over.

use std::path::Path;

use serde_json::{Value, json};

use super::chromium::Browser;
use super::installed;

/// Runs the rules over the whole document. Only what stops people is asked for; the rest stays silent.
const RUN: &str = "const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(
  (found) => done(found.violations.filter((it) => it.impact === 'serious' || it.impact === 'critical').map((it) =>
    `${it.impact}: ${it.help} (${it.id})\\n` + it.nodes.slice(0, 5).map((node) =>
      `  ${node.target.join(' ')}: ${[...node.any, ...node.all, ...node.none].map((one) => one.message).join('; ')}`).join('\\n'))),
  (error) => done([String(error)]));";

/// The rules, once for a test: `None` where axe-core is not installed.
pub(crate) struct Axe(String);

impl Axe {
    /// Reads the script that `TEAMS_AXE` names.
    pub(crate) fn installed() -> Option<Axe> {
        installed("TEAMS_AXE").map(|path| Axe::read(&path))
    }

    fn read(path: &Path) -> Axe {
        Axe(std::fs::read_to_string(path).unwrap())
    }

    /// Fails, naming each, if anything serious or critical is wrong with what is on show, in light
    /// and in dark. `place` says where that is.
    pub(crate) async fn sound(&self, browser: &Browser, place: &str) {
        // Once a document: the script asks for the page's own engine only.
        browser.run(&format!("if (!window.axe) {{ {} }}", self.0)).await;
        let theme = browser.run("return document.documentElement.dataset.theme").await;
        for look in ["light", "dark"] {
            let set = format!("document.documentElement.dataset.theme = '{look}'");
            browser.run(&set).await;
            // What slides or fades has come to rest.
            browser
                .until("document.getAnimations().every((it) => it.playState !== 'running')")
                .await;
            let found = browser.client.execute_async(RUN, Vec::new()).await.unwrap();
            assert!(found == json!([]), "{place}, {look}: {}", listed(&found));
        }
        browser.run(&format!("document.documentElement.dataset.theme = {theme}")).await;
    }
}

fn listed(found: &Value) -> String {
    let lines = found.as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(|line| format!("\n{line}")).collect()
}
