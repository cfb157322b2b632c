//! Headless Chromium, driven over WebDriver.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// How long a page may take for what it is waited for. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(240);

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
        let port = free_port();
        let mut driver = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let listens = lines.any(|line| {
            let listens = line.contains("started successfully on port ");
            said.push(line);
            listens
        });
        assert!(listens, "chromedriver does not listen: {said:?}");
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

/// A port that nobody has and nobody is given. chromedriver listens with one number on both loopback
/// addresses: where it chooses the number itself it looks at one of them alone, and ends where somebody
/// listens on the other. The numbers here are below those which the system gives to whoever asks for any.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = 20_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 10_000;
        let free = |host: &str| match TcpListener::bind((host, port)) {
            Ok(_) => true,
            Err(error) => error.kind() != std::io::ErrorKind::AddrInUse,
        };
        if free("127.0.0.1") && free("::1") {
            return port;
        }
    }
}
