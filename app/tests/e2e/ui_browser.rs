//! The pages of `archeflow ui` in a real browser: light, dark and on a phone, with keys alone, live, and by the rules of
//! axe for accessibility. The browser is spoken to over a pipe, so no port is open for others.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::ui::{Browser, WAITS, broken, wait_for_end};
use crate::harness::{LONG, TASK, Test};

struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    number: u64,
    session: String,
    /// What the browser complained about.
    complaints: Vec<String>,
}

impl Chromium {
    fn open(test: &Test) -> Chromium {
        let [ask, answer] = ["browser-in", "browser-out"].map(|name| test.base().join(name));
        for pipe in [&ask, &answer] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let profile = test.base().join("profile");
        let line = format!(
            "exec chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-sync \
             --disable-background-networking --disable-component-update --hide-scrollbars \
             --remote-debugging-pipe --user-data-dir='{}' about:blank 3<'{}' 4>'{}'",
            profile.display(),
            ask.display(),
            answer.display()
        );
        let child = Command::new("sh")
            .args(["-c", &line])
            .env("HOME", test.home())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium is there");
        let to = fs::OpenOptions::new().write(true).open(&ask).unwrap();
        let from = BufReader::new(File::open(&answer).unwrap());
        let mut chromium =
            Chromium { child, to, from, number: 0, session: String::new(), complaints: Vec::new() };
        let made = chromium.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = made["targetId"].clone();
        let attached = chromium.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        attached["sessionId"].as_str().unwrap().clone_into(&mut chromium.session);
        for domain in ["Page", "Runtime", "Log"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        chromium
    }

    /// One message of the browser.
    fn hear(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser is gone");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Log.entryAdded") => self.complaints.push(params["entry"]["text"].to_string()),
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            _ => {}
        }
        message
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method });
        message["params"] = params;
        if !self.session.is_empty() && !method.starts_with("Target.") {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let heard = self.hear();
            if heard["id"] == self.number {
                assert!(heard.get("error").is_none(), "{method}: {heard}");
                return heard["result"].clone();
            }
        }
    }

    /// Goes to an address and waits until this is true there.
    fn go(&mut self, address: &str, until: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait(until);
    }

    fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        result["result"]["value"].clone()
    }

    fn wait(&mut self, until: &str) {
        let begun = std::time::Instant::now();
        while self.eval(&format!("Boolean({until})")) != true {
            assert!(begun.elapsed() < LONG, "never: {until}");
            std::thread::yield_now();
        }
    }

    fn look(&mut self, width: u32, scheme: &str) {
        let phone = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone }),
        );
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    fn key(&mut self, key: &str, code: u32, modifiers: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" && kind == "keyDown" { "\r" } else { "" };
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers, "text": text }),
            );
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LOADED: &str = "document.readyState === 'complete' && document.querySelector('main')";

#[test]
#[ignore = "needs chromium and axe; `cargo xtask test` runs it"]
fn u_16_pages_are_accessible_and_fit_in_a_browser() {
    let axe =
        fs::read_to_string(std::env::var_os("ARCHEFLOW_AXE").expect("`cargo xtask test browser` sets it"))
            .unwrap();
    let (test, _) = broken();
    let server = Browser::open(&test, &[]);
    let run = server.run_page();
    let mut chromium = Chromium::open(&test);
    let base = format!("http://127.0.0.1:{}", server.port);
    chromium.go(&format!("{base}/in?t={}", server.token), "document.querySelector('form.decision')");
    let mut pages: Vec<String> =
        ["/", "/runs", "/sprints", "/loops", "/reviews", "/memory", "/scores", "/nowhere"]
            .iter()
            .map(|page| (*page).to_owned())
            .collect();
    for part in ["", "/findings", "/agents", "/why", "/costs", "/artifacts", "/journal"] {
        pages.push(format!("{run}{part}"));
    }
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (400, "light")] {
        chromium.look(width, scheme);
        for page in &pages {
            chromium.go(&format!("{base}{page}"), &format!("{LOADED} && location.pathname === '{page}'"));
            let wide = chromium.eval("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{page} is {wide} wide on {width}");
            assert_eq!(
                chromium.eval("document.querySelectorAll('b script, script:not([src]), [style]').length"),
                0
            );
            chromium.eval(&axe);
            let found = chromium.eval(
                "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })\
                 .then(found => JSON.stringify(found.violations.map(one => [one.id, one.nodes.map(node => node.html)])))",
            );
            assert_eq!(found, "[]", "{page} {width} {scheme}");
        }
    }
    let complaints: Vec<&String> = chromium.complaints.iter().filter(|text| !text.contains("404")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_16_a_decision_is_made_with_keys_alone_in_a_browser() {
    let (test, id) = broken();
    let server = Browser::open(&test, &[]);
    let mut chromium = Chromium::open(&test);
    let base = format!("http://127.0.0.1:{}", server.port);
    chromium.go(&format!("{base}/in?t={}", server.token), "document.querySelector('form.decision')");
    // From the top of the page to the text, by Tab alone.
    let mut steps = 0;
    while chromium.eval("document.activeElement.name === 'text'") != true {
        chromium.key("Tab", 9, 0);
        steps += 1;
        assert!(steps < 60, "the text is not reached by keys");
    }
    chromium.call("Input.insertText", json!({ "text": "The guard stays" }));
    chromium.key("Enter", 13, 2);
    chromium.wait("location.pathname.startsWith('/run/')");
    let events = wait_for_end(&test, &id);
    let continued = events.iter().find(|line| line["type"] == "run.continued").unwrap();
    assert_eq!(
        (&continued["data"]["ruling"], &continued["data"]["by"]),
        (&json!("The guard stays"), &json!("ui"))
    );
}

#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_16_an_open_page_keeps_up_in_a_browser() {
    let test = Test::new().play(WAITS);
    let mut child = test
        .command(env!("CARGO_BIN_EXE_archeflow"))
        .args(test.arguments(TASK, &["--auto-merge"]))
        .current_dir(&test.repo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    test.wait_for_file("working");
    let server = Browser::open(&test, &[]);
    let mut chromium = Chromium::open(&test);
    let base = format!("http://127.0.0.1:{}", server.port);
    chromium.go(&format!("{base}/in?t={}", server.token), LOADED);
    let page = format!("{}/journal", server.run_page());
    chromium.go(&format!("{base}{page}"), &format!("{LOADED} && location.pathname === '{page}'"));
    chromium.eval("window.same = true");
    fs::write(test.base().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    chromium.wait("document.querySelector('#journal').textContent.includes('run.complete')");
    chromium.wait("document.querySelector('[data-part=facts]').textContent.includes('merged')");
    assert_eq!(chromium.eval("window.same"), true, "the page was not loaded again");
    let rows = chromium.eval("[...document.querySelectorAll('#journal tr')].map(row => row.id).join()");
    let lines = super::ui::journal(&test, &test.run_ids()[0]).len();
    let expected: Vec<String> = (1..=lines).map(|n| format!("l{n}")).collect();
    assert_eq!(rows, expected.join(","), "every line once, in order");
}
