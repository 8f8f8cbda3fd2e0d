//! [`Driver`]: a chromedriver process of this test, on loopback.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::page::Page;

/// Where Debian installs it.
const PROGRAM: &str = "/usr/bin/chromedriver";
/// A page that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A chromedriver process. It ends when this is dropped.
#[derive(Debug)]
pub struct Driver {
    process: Child,
    address: String,
    agent: ureq::Agent,
}

impl Driver {
    /// Starts chromedriver. `None`, said loudly, if it is not installed.
    ///
    /// # Panics
    /// If it is not installed and `CI=true`, or if it does not start.
    pub fn start() -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            assert_ne!(env::var("CI").as_deref(), Ok("true"), "chromium-driver is not installed");
            eprintln!(
                "\n*** SKIPPED: chromium-driver is not installed (apt-get install chromium chromium-driver) ***\n"
            );
            return None;
        }
        let mut command = Command::new(PROGRAM);
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("chromedriver starts");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let started = "was started successfully on port ";
        let port = lines.map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once(started)?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.expect("chromedriver says its port");
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT));
        Some(Self { process, address: format!("http://127.0.0.1:{port}"), agent: config.build().into() })
    }

    /// Opens a browser window of this size, with a profile of its own.
    ///
    /// # Panics
    /// If Chromium does not start.
    pub fn open(&self, width: u32, height: u32, dark: bool) -> Page {
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let mut args = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--no-first-run".to_owned(),
            "--force-device-scale-factor=1".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        // Chromium refuses its sandbox to root, as which tests run in containers.
        if env::var("USER").is_ok_and(|user| user == "root")
            || Path::new("/root").metadata().is_ok_and(|_| is_root())
        {
            args.push("--no-sandbox".to_owned());
        }
        if dark {
            args.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"implicit": 10_000, "pageLoad": 30_000, "script": 10_000},
        }}});
        let session = self.call("/session", &capabilities);
        let id = session["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {session}"));
        let page = Page::new(self.agent.clone(), format!("{}/session/{id}", self.address), profile);
        // The window's size includes a frame in some versions; this is the size of the page.
        page.resize(width, height);
        page
    }

    fn call(&self, path: &str, body: &Value) -> Value {
        let mut answer =
            self.agent.post(format!("{}{path}", self.address)).send_json(body).expect("chromedriver answers");
        let mut value: Value = answer.body_mut().read_json().expect("an answer in JSON");
        value["value"].take()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether this process may do everything: only root owns `/root` and enters it.
fn is_root() -> bool {
    std::fs::read_dir("/root").is_ok()
}
