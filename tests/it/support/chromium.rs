//! Headless Chromium, driven over WebDriver.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// How long a page may take for what it is waited for. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one window; it ends with the value.
pub(crate) struct Browser {
    /// The WebDriver session.
    pub(crate) client: Client,
    driver: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window of that many CSS pixels. Where Chromium is not installed the result is `None`,
    /// unless `TEAMS_NO_SKIP` forbids skipping.
    pub(crate) async fn open(width: u32, height: u32) -> Option<Browser> {
        let (chromium, driver) = ("/usr/bin/chromium", "/usr/bin/chromedriver");
        if !Path::new(chromium).exists() || !Path::new(driver).exists() {
            assert!(std::env::var_os("TEAMS_NO_SKIP").is_none(), "chromium is not installed");
            #[expect(clippy::print_stdout, reason = "a skipped test has to say so")]
            {
                println!("skipped: chromium not installed");
            }
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("started successfully on port ")?;
                rest.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("chromedriver names its port");
        let options = json!({
            "binary": chromium,
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--lang=en-US",
                format!("--user-data-dir={}", profile.path().display()),
            ],
            // A window has a smallest width; an emulated screen has not.
            "mobileEmulation": {
                "deviceMetrics": {
                    "width": width, "height": height, "pixelRatio": 1.0, "touch": false,
                    "mobile": false,
                },
            },
        });
        let mut capabilities = serde_json::Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Some(Browser { client, driver, _profile: profile })
    }

    /// Waits for an element of the given CSS selector.
    pub(crate) async fn wait(&self, css: &str) -> fantoccini::elements::Element {
        let wait = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        match wait {
            Ok(found) => found,
            Err(error) => panic!("nothing matches {css}: {error}\n{}", self.log().await),
        }
    }

    /// Waits until a script's result is true.
    pub(crate) async fn until(&self, script: &str) {
        let script = format!("return Boolean({script})");
        let end = tokio::time::Instant::now() + PATIENCE;
        while self.run(&script).await != json!(true) {
            assert!(
                tokio::time::Instant::now() < end,
                "never true: {script}\n{}",
                self.log().await
            );
        }
    }

    /// Runs a script in the page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// The text of the page, for messages about failures.
    async fn log(&self) -> String {
        self.run("return document.body.innerText").await.to_string()
    }

    /// Saves a picture of the window, if `TEAMS_SCREENSHOTS` names a folder for them.
    pub(crate) async fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("TEAMS_SCREENSHOTS") {
            let bytes = self.client.screenshot().await.unwrap();
            std::fs::write(Path::new(&folder).join(name), bytes).unwrap();
        }
    }

    /// Keeps a picture of the window in `target/page-shots`, for people to look at.
    pub(crate) async fn keep(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("page-shots");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), self.client.screenshot().await.unwrap()).unwrap();
    }

    /// Closes the window and ends the driver.
    pub(crate) async fn close(self) {
        self.client.clone().close().await.unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser when it is ended itself.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
