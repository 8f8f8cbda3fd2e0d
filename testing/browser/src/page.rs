//! [`Page`]: a browser window, by WebDriver's commands.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The key under which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long to wait for what the page does by itself.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Keys that have no character.
pub mod key {
    /// Tab.
    pub const TAB: &str = "\u{e004}";
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Space.
    pub const SPACE: &str = " ";
}

/// A browser window. It closes when this is dropped.
#[derive(Debug)]
pub struct Page {
    agent: ureq::Agent,
    session: String,
    _profile: TempDir,
}

impl Page {
    pub(crate) fn new(agent: ureq::Agent, session: String, profile: TempDir) -> Self {
        Self { agent, session, _profile: profile }
    }

    /// Goes to a URL and waits until it is loaded.
    pub fn go(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// The URL of the page.
    pub fn url(&self) -> String {
        text(&self.get("url"))
    }

    /// The page's title.
    pub fn title(&self) -> String {
        text(&self.get("title"))
    }

    /// What a person can read on the page.
    pub fn text(&self) -> String {
        self.text_of("body")
    }

    /// What a person can read in the first element that fits. Waits for it.
    pub fn text_of(&self, css: &str) -> String {
        text(&self.on_fresh(css, |element| self.try_get(&format!("element/{element}/text"))))
    }

    /// Waits until the first element that fits shows this text. A click that leads to another page may return while the old one is
    /// still there.
    ///
    /// # Panics
    /// If it does not within 15 seconds.
    pub fn wait_for_text(&self, css: &str, expected: &str) {
        let until = Instant::now() + WAIT_MAX;
        loop {
            let found = self.text_of(css);
            if found.contains(expected) {
                return;
            }
            assert!(
                Instant::now() < until,
                "{css} on {} shows {found:?} instead of {expected:?}",
                self.url()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Clicks the first element that fits. Waits for it.
    pub fn click(&self, css: &str) {
        self.on_fresh(css, |element| self.try_post(&format!("element/{element}/click"), &json!({})));
    }

    /// Finds an element and does something to it, again if a live page replaced it in between.
    fn on_fresh(&self, css: &str, act: impl Fn(&str) -> Result<Value, String>) -> Value {
        let mut done = act(&self.find(css));
        for _ in 0..5 {
            if !done.as_ref().is_err_and(|error| error.contains("stale element")) {
                break;
            }
            done = act(&self.find(css));
        }
        done.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// Types into the first element that fits, in place of what was there.
    pub fn fill(&self, css: &str, value: &str) {
        let element = self.find(css);
        self.post(&format!("element/{element}/clear"), &json!({}));
        self.post(&format!("element/{element}/value"), &json!({"text": value}));
    }

    /// Presses keys, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let presses: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": presses}]}));
    }

    /// Runs a script and returns its value.
    pub fn script(&self, body: &str) -> Value {
        self.post("execute/sync", &json!({"script": body, "args": []}))
    }

    /// Waits until a script returns true: for what the page does by itself.
    ///
    /// # Panics
    /// If it does not within 15 seconds.
    pub fn wait_for(&self, condition: &str) {
        let until = Instant::now() + WAIT_MAX;
        while self.script(&format!("return Boolean({condition})")) != Value::Bool(true) {
            assert!(
                Instant::now() < until,
                "{condition} never became true on {}: {}\n{:?}\n{:?}",
                self.url(),
                self.text(),
                self.complaints(),
                self.requests()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes the page this large.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Turns scripts off, or on again, for pages that are loaded from now on.
    pub fn disable_scripts(&self, off: bool) {
        self.cdp("Emulation.setScriptExecutionDisabled", &json!({"value": off}));
    }

    /// Writes a picture of the visible part.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn screenshot(&self, path: &Path) {
        let picture = STANDARD.decode(text(&self.get("screenshot"))).expect("a picture");
        fs::write(path, picture).expect("the picture can be written");
    }

    /// What was written to the console since the last call, from warnings on.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| matches!(entry["level"].as_str(), Some("WARNING" | "SEVERE"));
        entries.iter().filter(is_bad).map(|entry| text(&entry["message"])).collect()
    }

    /// The URLs that were asked for since the last call.
    pub fn requests(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "performance"}));
        let urls = entries.as_array().into_iter().flatten().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &message["message"];
            let is_request = message["method"] == "Network.requestWillBeSent";
            is_request.then(|| text(&message["params"]["request"]["url"]))
        });
        urls.collect()
    }

    /// The number of elements that fit, without waiting for them.
    pub fn count(&self, css: &str) -> usize {
        let found = self.script(&format!("return document.querySelectorAll({}).length", json!(css)));
        usize::try_from(found.as_u64().unwrap_or(0)).unwrap_or(0)
    }

    fn find(&self, css: &str) -> String {
        let found = self.post("element", &json!({"using": "css selector", "value": css}));
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {css} on {}", self.url())).to_owned()
    }

    fn cdp(&self, command: &str, params: &Value) {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": params}));
    }

    fn get(&self, path: &str) -> Value {
        self.try_get(path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn try_get(&self, path: &str) -> Result<Value, String> {
        let mut answer =
            self.agent.get(format!("{}/{path}", self.session)).call().expect("chromedriver answers");
        value(answer.body_mut().read_json().expect("an answer in JSON"))
    }

    fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let request = self.agent.post(format!("{}/{path}", self.session));
        let mut answer = request.send_json(body).expect("chromedriver answers");
        value(answer.body_mut().read_json().expect("an answer in JSON"))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
    }
}

/// The value of an answer, or WebDriver's error.
fn value(mut answer: Value) -> Result<Value, String> {
    let value = answer["value"].take();
    match value.get("error") {
        Some(error) => Err(format!("{error}: {}", value["message"])),
        None => Ok(value),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
