//! Chromium without a window, spoken to over its debugging pipe.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// The browser's program: `TIPHYS_CHROMIUM`, or `chromium` in the path.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TIPHYS_CHROMIUM") {
        return Some(given.into());
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join("chromium")).find(|file| file.is_file())
}

/// A page in a browser.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Value,
    count: u64,
    faults: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Browser {
    /// Opens a file.
    pub(crate) fn open(chromium: &Path, file: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| folder.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        // The browser reads file descriptor 3 and writes 4.
        let script = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<\"$2\" 4>\"$3\"";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(chromium)
            .args([&folder.path().join("profile"), &to, &from])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let (session, faults) = (Value::Null, Vec::new());
        let mut browser = Self { child, to, from, session, count: 0, faults, _folder: folder };
        let target = browser.send("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.send("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].clone();
        for domain in ["Runtime", "Log", "Page"] {
            browser.send(&format!("{domain}.enable"), json!({}));
        }
        browser.send("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        browser.wait_for("Page.loadEventFired");
        browser
    }

    /// What the browser complained of: exceptions, and what the page's policy forbade.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.clone()
    }

    /// Sets the width and the colours of the screen.
    pub(crate) fn resize(&mut self, width: u32, is_dark: bool) {
        let screen = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
        self.send("Emulation.setDeviceMetricsOverride", screen);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.send("Emulation.setEmulatedMedia", features);
    }

    /// The value of an expression on the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let answer = self.send("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// Presses a key and lets it go.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => panic!("the key {key} has no number here"),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.send("Input.dispatchKeyEvent", event);
        }
    }

    fn send(&mut self, method: &str, params: Value) -> Value {
        self.count += 1;
        let mut message = json!({"id": self.count, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        loop {
            let message = self.read();
            if message["id"] == self.count {
                assert!(message.get("error").is_none(), "{method}: {message:#}");
                return message["result"].clone();
            }
        }
    }

    fn wait_for(&mut self, event: &str) {
        while self.read()["method"] != event {}
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        if let Some("Runtime.exceptionThrown" | "Log.entryAdded") = message["method"].as_str() {
            self.faults.push(message["params"].to_string());
        }
        message
    }
}
