//! A headless Chromium on a string: its debugging protocol over two pipes (descriptors 3 and 4), messages ended by a NUL. No
//! port, no library, nothing but what the test needs.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Nothing that a page does here takes longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// What the page complained about, or tried to load.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Browser {
    /// Starts one with a window of this size, in a system that is dark or light.
    pub fn start(width: u32, height: u32, dark: bool) -> Browser {
        let profile = TempDir::new().expect("a directory for the profile");
        // The shell puts the pipes where the browser looks for them.
        let line = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                    --disable-extensions --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 0</dev/null 1>/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", line, "sh"])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let to = process.stdin.take().expect("piped");
        let mut reader = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { break };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser =
            Browser { process, to, from, next: 0, session: None, complaints: Vec::new(), _profile: profile };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().and_then(|all| all.iter().find(|t| t["type"] == "page"));
        let target = page.expect("a page")["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme},
                                           {"name": "prefers-reduced-motion", "value": "reduce"}]});
        browser.call("Emulation.setEmulatedMedia", features);
        browser
    }

    /// Calls a method and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes()).expect("chromium listens (apt install chromium)");
        self.to.write_all(&[0]).expect("chromium listens");
        self.to.flush().expect("chromium listens");
        loop {
            let answer = self.from.recv_timeout(PATIENCE);
            let answer =
                answer.unwrap_or_else(|e| panic!("chromium did not answer {method}: {e} (is it installed?)"));
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.event(&answer);
        }
    }

    fn event(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" | "Log.entryAdded" => self.complaints.push(params.to_string()),
            "Runtime.consoleAPICalled" if params["type"] != "log" => self.complaints.push(params.to_string()),
            "Page.javascriptDialogOpening" => {
                self.complaints.push(format!("a dialog: {params}"));
            }
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with("data:") && params["type"] != "Document" {
                    self.complaints.push(format!("it asks for {url}"));
                }
            }
            _ => {}
        }
    }

    /// Opens a file and waits until its script has run.
    pub fn open(&mut self, page: &Path) {
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", json!({"url": url}));
        self.until("document.readyState === 'complete' && typeof window.nodefold === 'object'");
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((done, fail) => {{ let left = 2400; const look = () => {{ let ok = false; try {{ ok = {expression}; }} catch {{}} \
             if (ok) done(true); else if (left-- === 0) fail(new Error('never true')); else setTimeout(look, 25); }}; look(); }})"
        );
        // A page that is being replaced forgets the question: then it is asked once more.
        for _ in 0..20 {
            let asked = json!({"expression": wait, "returnByValue": true, "awaitPromise": true});
            self.next += 1;
            let id = self.next;
            let mut message = json!({"id": id, "method": "Runtime.evaluate", "params": asked});
            message["sessionId"] = json!(self.session);
            self.to.write_all(message.to_string().as_bytes()).expect("chromium listens");
            self.to.write_all(&[0]).expect("chromium listens");
            let answer = loop {
                let answer = self.from.recv_timeout(PATIENCE).expect("chromium answers");
                if answer["id"] == id {
                    break answer;
                }
                self.event(&answer);
            };
            if answer["result"]["result"]["value"] == true {
                return;
            }
            assert!(answer["result"]["exceptionDetails"].is_null(), "{expression}: {answer}");
        }
        panic!("{expression}: the page never settled");
    }

    /// Presses the mouse at a point and lets it go there.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            self.call(
                "Input.dispatchMouseEvent",
                json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": i32::from(kind != "mouseMoved")}),
            );
        }
    }

    /// Types a key: its name, and the text that it makes, if any.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        self.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": key, "text": text}));
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
    }

    /// The page must not have complained.
    pub fn assert_quiet(&mut self) {
        self.eval("1");
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
    }
}
