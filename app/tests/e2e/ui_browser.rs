//! The pages of `archeflow ui` in a real browser: light, dark and on a phone, with keys alone, live, and by the rules of
//! axe for accessibility. The browser is spoken to over a pipe, so no port is open for others.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::control::{WAITS, driver};
use super::ui::{Browser, broken, wait_for_end};
use crate::harness::{LONG, Test};

pub(super) struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    number: u64,
    session: String,
    /// What the browser complained about.
    pub(super) complaints: Vec<String>,
}

impl Chromium {
    pub(super) fn open(base: &Path, home: &Path) -> Chromium {
        let [ask, answer] = ["browser-in", "browser-out"].map(|name| base.join(name));
        for pipe in [&ask, &answer] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let profile = base.join("profile");
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
            .env("HOME", home)
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

    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
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
    pub(super) fn go(&mut self, address: &str, until: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait(until);
    }

    /// Exchanges the printed address for a cookie.
    pub(super) fn enter(&mut self, server: &Browser) {
        let address = format!("{}/in?t={}", server.base(), server.token);
        self.go(&address, &format!("{LOADED} && location.pathname === '/'"));
    }

    pub(super) fn visit(&mut self, server: &Browser, page: &str) {
        self.go(&format!("{}{page}", server.base()), &format!("{LOADED} && location.pathname === '{page}'"));
    }

    /// Presses what this selects, at its place on the screen.
    fn tap(&mut self, what: &str) {
        let place = self.eval(&format!(
            "(() => {{ const one = document.querySelector({what:?}); one.scrollIntoView({{ block: 'center' }}); \
             const at = one.getBoundingClientRect(); return [at.x + at.width / 2, at.y + at.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            self.call(
                "Input.dispatchMouseEvent",
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 }),
            );
        }
    }

    pub(super) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        result["result"]["value"].clone()
    }

    pub(super) fn wait(&mut self, until: &str) {
        let begun = std::time::Instant::now();
        while self.eval(&format!("Boolean({until})")) != true {
            assert!(begun.elapsed() < LONG, "never: {until}");
            std::thread::yield_now();
        }
    }

    pub(super) fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let phone = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone }),
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

pub(super) const LOADED: &str = "document.readyState === 'complete' && document.querySelector('main')";

#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_16_a_decision_is_made_with_keys_alone_in_a_browser() {
    let (test, id) = broken();
    let server = Browser::open(&test, &[]);
    let mut chromium = Chromium::open(&test.base(), &test.home());
    chromium.enter(&server);
    chromium.wait("document.querySelector('form.decision')");
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
    let (mut child, _) = driver(&test);
    let server = Browser::open(&test, &[]);
    let mut chromium = Chromium::open(&test.base(), &test.home());
    chromium.enter(&server);
    chromium.visit(&server, &format!("{}/journal", server.run_page()));
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

/// On a phone: the change is landed from the inbox, after it was asked once more.
#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_16_a_change_is_landed_from_a_phone_in_a_browser() {
    let test = Test::new().play("");
    let waits = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let server = Browser::open(&test, &[]);
    let mut chromium = Chromium::open(&test.base(), &test.home());
    chromium.look(400, 800, "light");
    chromium.enter(&server);
    chromium.wait("document.querySelector('form.decision input:checked')");
    chromium.tap("form.decision button[type=submit]");
    chromium.wait(&format!("{LOADED} && document.querySelector('[aria-label=Confirm]')"));
    let shown = chromium.eval("document.querySelector('main').innerText");
    for words in ["Land it on main?", "Commit", "Tree", "archeflow merge"] {
        assert!(shown.as_str().unwrap().contains(words), "{words}: {shown}");
    }
    chromium.tap("[aria-label=Confirm] button[type=submit]");
    chromium.wait("location.pathname.startsWith('/run/')");
    let events = wait_for_end(&test, &waits.id);
    assert_eq!(events.last().unwrap()["data"]["status"], "merged");
    let asked = events.iter().find(|line| line["type"] == "merge.requested").unwrap();
    assert_eq!(asked["data"]["by"], "ui");
}

/// A page of another site, on the same machine and in the same browser, that tries everything a page can.
const ATTACK: &str = r#"(async base => {
    const tried = {};
    const refused = () => 'refused';
    const form = new URLSearchParams({ run: 'x/y', at: '1', choice: '0', text: 'no' });
    tried.read = await fetch(base + '/', { credentials: 'include' }).then(answer => answer.text(), refused);
    tried.api = await fetch(base + '/api/runs', { credentials: 'include' }).then(answer => answer.text(), refused);
    tried.post = await fetch(base + '/do', { method: 'POST', credentials: 'include', body: form })
        .then(answer => answer.text(), refused);
    const load = (name, source) => new Promise(done => {
        const one = document.createElement(name);
        one.onload = () => done('loaded');
        one.onerror = refused_by => done('refused');
        one.src = base + source;
        document.body.append(one);
    });
    tried.script = await load('script', '/ui.js');
    tried.stream = await new Promise(done => {
        const events = new EventSource(base + '/events?of=inbox', { withCredentials: true });
        events.onopen = () => done('open');
        events.onerror = () => { events.close(); done('refused'); };
    });
    return JSON.stringify(tried);
})"#;

#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_16_pages_of_other_sites_get_nothing_in_a_browser() {
    let (test, id) = broken();
    let server = Browser::open(&test, &[]);
    let before = test.journal_bytes(&id);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in other.incoming().map_while(Result::ok) {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let page = "<!doctype html><title>other</title><body><main>other</main></body>";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len());
        }
    });
    let mut chromium = Chromium::open(&test.base(), &test.home());
    chromium.enter(&server);
    let base = server.base();
    for site in ["127.0.0.1", "localhost"] {
        let own = format!("{LOADED} && document.title === 'other'");
        chromium.go(&format!("http://{site}:{port}/"), &own);
        let tried = chromium.eval(&format!("{ATTACK}('{base}')"));
        let tried: Value = serde_json::from_str(tried.as_str().unwrap()).unwrap();
        for (what, came) in tried.as_object().unwrap() {
            assert_eq!(came, "refused", "{what} from {site}");
        }
        // A form needs no permission to be sent, and its answer is shown.
        chromium.eval(&format!(
            "(() => {{ const form = document.createElement('form'); form.method = 'post'; form.action = '{base}/do'; \
             document.body.append(form); form.submit(); }})()"
        ));
        chromium.wait(&format!("location.href === '{base}/do' && document.body"));
        let shown = chromium.eval("document.body.innerText");
        assert!(!shown.as_str().unwrap().contains("archeflow continue"), "{site}: {shown}");
        // Nor is a page of ours shown inside of another one.
        chromium.go(&format!("http://{site}:{port}/"), &own);
        chromium.complaints.clear();
        chromium.eval(&format!(
            "new Promise(done => {{ const one = document.createElement('iframe'); one.onload = done; one.src = '{base}/'; \
             document.body.append(one); }})"
        ));
        chromium.wait("document.querySelector('iframe')");
        let said = chromium.complaints.join("\n");
        assert!(said.contains("frame-ancestors") || said.contains("403"), "{site}: {said}");
    }
    assert_eq!(test.journal_bytes(&id), before);
    // The person's own tab still works, and the reviewer's script is text there.
    chromium.visit(&server, &server.run_page());
    let text = chromium.eval("document.querySelector('main').innerText");
    assert!(text.as_str().unwrap().contains("<script>alert(1)</script>"), "{text}");
    assert_eq!(chromium.eval("document.querySelectorAll('main script').length"), 0);
}
