//! `report`, `dag`, and `list` and `status` over several repositories; and the page in a real browser.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::harness::{Test, as_strs, review};

const FOUND: &str =
    "src/app.txt:3 | WARNING | reliability | Line three loses its end | Keep the end | `src/app.txt:3`";

#[test]
fn bx_10_a_run_is_reported_with_its_change() {
    let scenes = review("guardian cycle=1", "REJECTED", &[FOUND]);
    let test = Test::new().play(&scenes);
    let merged = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
    let id = merged.id.as_str();
    let markdown = test.run(&["report", id]);
    let page = test.run(&["report", id, "--html"]);
    for words in
        ["Line three loses its end", "made in cycle 2", "AF-109", "check-guardian.md", "case 1 1 DIFFED"]
    {
        assert!(markdown.stdout.contains(words), "'{words}'\n{markdown}");
        assert!(page.stdout.contains(words), "'{words}'\n{page}");
    }
    assert!(markdown.stdout.contains("| WARNING | ● | ✓ |"), "{markdown}");
    let line = test.run(&["report", id, "--summary"]).stdout;
    assert!(
        line.starts_with("merged (approved): Add a line to the app | 2 cycles") && line.lines().count() == 1,
        "{line}"
    );
    let json = test.run(&["report", id, "--json"]);
    assert_eq!(json.json["findings"][0]["states"], serde_json::json!(["new", "resolved"]), "{json}");
    assert_eq!(json.json["merged_oid"], merged.json["merged_oid"]);
    let file = test.base().join("report.html");
    let written = test.run(&["report", id, "--html", "--output", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), page.stdout, "{written}");
    assert!(test.run(&["report", id, "--dag"]).stdout.contains("└─ #"));
    test.run(&["report", "nowhere"]).refused(2, &["nowhere"]);
}

#[test]
fn bx_10_what_waits_on_its_branch_is_reported_too() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let report = test.run(&["report", &waiting.id]);
    assert!(report.stdout.contains("made in cycle 1") && report.stdout.contains("not landed"), "{report}");
    assert!(report.stdout.contains(&format!("archeflow merge {}", waiting.id)), "{report}");
}

#[test]
fn bx_09_the_graph_has_every_event_in_every_format() {
    let test = Test::new().play("");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let lines = merged.journal.len();
    let tree = test.run(&["dag", &merged.id]).stdout;
    assert_eq!(tree.lines().count(), lines, "{tree}");
    assert!(tree.starts_with("#1 run.start") && !tree.contains('\u{1b}'), "{tree}");
    let json = test.run(&["dag", &merged.id, "--json"]);
    let nodes = json.json["nodes"].as_array().unwrap();
    let mut seqs: Vec<u64> = nodes.iter().filter_map(|node| node["seq"].as_u64()).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=lines as u64).collect::<Vec<_>>());
    for line in &merged.journal {
        let node = nodes.iter().find(|node| node["seq"] == line["seq"]).unwrap();
        assert_eq!((&node["parents"], &node["type"]), (&line["parent"], &line["type"]));
    }
    for (format, node) in [("--dot", "n1 [label="), ("--mermaid", "n1[\"")] {
        let graph = test.run(&["dag", &merged.id, format]).stdout;
        assert!(graph.contains(node) && graph.contains(&format!("n{lines}")), "{graph}");
    }
    test.run(&["dag", &merged.id, "--dot", "--mermaid"]).refused(2, &[]);
}

/// U-16: what the end of a run names, and what the other commands say about the same run.
#[test]
fn u_16_run_show_status_and_report_agree() {
    let test = Test::new().play("");
    let arguments = test.arguments("Add a line", &["--auto-merge", "--unattended"]);
    let first = test.run(&as_strs(&arguments));
    assert_eq!(first.code, 0, "{first}");
    let id = test.run_ids()[0].clone();
    assert!(first.stderr.contains(&format!("Report:    archeflow report {id}\n")), "{first}");
    assert!(first.stderr.contains(&format!("Journal:   .archeflow/events/{id}.jsonl\n")), "{first}");

    // The time between the first line and the last, to the millisecond.
    let shown = test.run(&["show", &id]);
    let took = shown.stderr.split("━━━ Complete: ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert!(took != "0ms" && took.ends_with('s'), "{took}: {shown}");

    // The logs of what ran on the base commit are artifacts like others.
    let events = test.run(&["show", &id, "--json"]);
    let events = events.json["events"].as_array().unwrap().clone();
    let preflight = events.iter().find(|event| event["type"] == "preflight.done").unwrap();
    let log = preflight["data"]["tests"]["artifact"].as_str().unwrap();
    assert!(test.repo.join(".archeflow/artifacts").join(&id).join(log).is_file(), "{log}");
    for format in [&["--html"][..], &[]] {
        let report = test.run(&[&["report", &id], format].concat());
        let list = report.stdout.rsplit("Artifacts").next().unwrap();
        assert!(list.contains(log), "{log}: {list}");
    }

    let page = test.run(&["report", &id, "--html"]).stdout;
    let plan = page.split("<h4 class=\"plan\">").nth(1).unwrap().split("<h4").next().unwrap();
    assert!(plan.contains("Before any change"), "{plan}");

    // All runs, not only the newest.
    let arguments = test.arguments("Add another line", &["--auto-merge", "--unattended"]);
    assert_eq!(test.run(&as_strs(&arguments)).code, 0);
    let listed = test.run(&["status", "--json"]);
    let runs = listed.json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{listed}");
    assert!(runs.iter().any(|run| run["run_id"] == id.as_str()), "{listed}");
}

#[test]
fn u_17_a_review_with_an_open_critical_is_not_green() {
    let row = "src/app.txt:2 | CRITICAL | security | Everybody can write it | Close it | `line two`";
    for (rows, tone) in [(&[row][..], "bad"), (&[], "good")] {
        let verdict = if rows.is_empty() { "APPROVED" } else { "REJECTED" };
        let test = Test::new().unshadowed().play(&review("guardian", verdict, rows));
        test.file("src/app.txt", "line 1\nline two\n");
        let agent = test.agent();
        let reviewed = test.run(&["review", "--agent", &agent, "--unattended"]);
        let page = test.run(&["report", &test.run_ids()[0], "--html"]).stdout;
        assert!(page.contains(&format!("class=\"pill {tone}\">reviewed")), "{reviewed}\n{page}");
        let boxes = page.split("The cycles").nth(1).unwrap().split("The findings").next().unwrap();
        assert_eq!(boxes.contains("disc bad"), tone == "bad", "{boxes}");
        let reviewed = boxes.split("<h4 class=\"act\">").nth(1).unwrap();
        assert!(reviewed.contains("Reviewed") && !reviewed.contains("Working tree"), "{boxes}");
    }
}

/// A second repository of the same user.
fn another(test: &Test, name: &str) -> std::path::PathBuf {
    let place = test.base().join(name);
    let clone = test.try_git(["clone", "-q", test.repo.to_str().unwrap(), place.to_str().unwrap()]);
    assert!(clone.status.success());
    for (key, value) in [("user.name", "Jo User"), ("user.email", "jo@example.org")] {
        test.git(["-C", place.to_str().unwrap(), "config", key, value]);
    }
    place
}

#[test]
fn bx_32_list_and_status_look_into_every_repository() {
    let test = Test::new().play("").unaudited();
    let other = another(&test, "other shop");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let there = other.to_str().unwrap();
    let arguments = test.arguments("Do it over there", &["--repo", there, "--unattended", "--json"]);
    let waiting = test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((waiting.code, &waiting.json["status"]), (10, &"awaiting_merge".into()), "{waiting}");
    let id = waiting.json["run_id"].as_str().unwrap().to_owned();

    let ids = |outcome: &crate::harness::Outcome| -> Vec<String> {
        let runs = outcome.json["runs"].as_array().unwrap();
        runs.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&test.run(&["list", "--json"])), [merged.id.as_str()]);
    assert_eq!(ids(&test.run(&["list", "--all", "--json"])), [merged.id.clone(), id.clone()]);
    assert_eq!(ids(&test.run(&["list", "--all", "--limit", "1", "--json"])), [id.as_str()]);
    let words = test.run(&["list", "--all"]);
    assert!(words.stdout.contains("other shop") && words.stdout.contains("awaiting_merge"), "{words}");

    // From here, what waits there, with a command that works from here.
    let status = test.run(&["status"]);
    let short = format!("archeflow merge do --repo '{there}'");
    assert!(status.stdout.contains("Waiting for you") && status.stdout.contains(&short), "{status}");
    let command = format!("archeflow merge {id} --repo '{there}'");
    assert!(status.stdout.contains(&merged.id), "the latest here is still told\n{status}");
    let json = test.run(&["status", "--json"]);
    assert_eq!(
        (&json.json["run_id"], &json.json["now"][0]["next"]),
        (&merged.id.clone().into(), &command.into())
    );

    // Outside of every repository.
    let test = test.from("..");
    assert_eq!(ids(&test.run(&["list", "--json"])), [merged.id.clone(), id.clone()]);
    assert!(test.run(&["status"]).stdout.contains("Waiting for you"));

    // One that is gone is skipped with a note.
    std::fs::remove_dir_all(&other).unwrap();
    let rest = test.run(&["list"]);
    assert!(rest.stdout.contains(&merged.id) && !rest.stdout.contains(&id), "{rest}");
    assert!(rest.stderr.contains("other shop") && rest.stderr.contains("skipped"), "{rest}");
}

#[test]
fn bx_32_an_interrupted_run_is_distinguished() {
    let test = Test::new().play("== maker ==\nsleep 60000\nsay <<END\nnever\nEND\n\n");
    let arguments = test.arguments("Add a line", &["--auto-merge"]);
    let arguments = as_strs(&arguments);
    test.during(&arguments, |child| {
        test.wait_for("agent.start", Some("maker"));
        let driven = Command::new(env!("CARGO_BIN_EXE_archeflow"))
            .args(["status", "--json", "--repo"])
            .arg(&test.repo)
            .env("HOME", test.home())
            .output()
            .unwrap();
        let driven: Value = serde_json::from_slice(&driven.stdout).unwrap();
        assert_eq!(
            (&driven["now"][0]["status"], &driven["now"][0]["interrupted"]),
            (&"running".into(), &false.into())
        );
        child.kill().unwrap();
    });
    let status = test.run(&["status"]);
    assert!(status.stdout.contains("interrupted") && status.stdout.contains("archeflow resume"), "{status}");
    assert!(test.run(&["list"]).stdout.contains("interrupted"));
}

/// What an agent would plant to get out of the page: markup in every shape, and requests to a place that listens.
fn probe(port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}/p");
    format!(
        "</title></style></textarea></svg><script>document.documentElement.setAttribute('data-owned', 1)</script>\
         <script src={url}.js></script><img src={url}.png onerror=document.documentElement.setAttribute('data-owned',2)>\
         <svg onload=document.documentElement.setAttribute('data-owned',3)></svg><iframe src={url}.html></iframe>\
         <link rel=stylesheet href={url}.css><style>body{{background:url({url}.bg)}}</style><object data={url}.o></object>"
    )
}

/// The page as the browser has it after loading, and how many requests it made.
fn browse(test: &Test, page: &str, listener: &TcpListener) -> (String, String, usize) {
    let seen = Arc::new(AtomicUsize::new(0));
    let file = test.base().join("page.html");
    std::fs::write(&file, page).unwrap();
    listener.set_nonblocking(true).unwrap();
    let profile = test.base().join("profile");
    let mut child = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .env("HOME", test.home())
        .stdin(std::process::Stdio::null())
        .stdout(std::fs::File::create(test.base().join("dom")).unwrap())
        .stderr(std::fs::File::create(test.base().join("console")).unwrap())
        .spawn()
        .expect("chromium is there");
    // A request is answered at once, so that a page that makes some can finish loading.
    let answer = || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(10)));
            let _ = stream.set_nonblocking(false);
            // A browser may open a line ahead of a request that its policy then forbids: nothing is said on that one.
            let mut request = [0; 4096];
            let said = stream.read(&mut request).unwrap_or(0);
            seen.fetch_add(usize::from(said > 0), Ordering::SeqCst);
            let _ = std::io::Write::write_all(
                &mut stream,
                b"HTTP/1.0 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    };
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        answer();
        if begun.elapsed() > crate::harness::LONG {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the browser did not come back");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    answer();
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    (read(&test.base().join("dom")), read(&test.base().join("console")), seen.load(Ordering::SeqCst))
}

/// What a browser measures in a page of this width: how wide it is, and what leaves the page or its box.
fn measured(test: &Test, page: &str, width: u32) -> Value {
    let script = "<script>\
        const page = document.documentElement, inside = (one, of) => one.left >= of.left - 1 && one.right <= of.right + 1;\
        const scrolls = element => element.closest('.wide, pre, .shapes');\
        const all = [...document.querySelectorAll('body *')].filter(element => !scrolls(element));\
        const out = all.filter(element => element.getBoundingClientRect().right > page.clientWidth + 1);\
        const boxes = [...document.querySelectorAll('.box')];\
        const left = boxes.filter(box => [...box.querySelectorAll('*')].some(part => \
            part.getClientRects().length && !inside(part.getBoundingClientRect(), box.getBoundingClientRect())) || box.scrollWidth > box.clientWidth);\
        const small = [...document.querySelectorAll('p.t, td, dd:not(.more)')].filter(element => \
            parseFloat(getComputedStyle(element).fontSize) < 13);\
        parent.postMessage(JSON.stringify({ width: page.clientWidth, wide: page.scrollWidth, boxes: boxes.length, \
            out: out.map(e => e.className || e.tagName), left: left.map(e => e.textContent), \
            small: small.map(e => e.textContent) }), '*');\
        </script></body>";
    // The page itself allows no script.
    let page = page.replacen("http-equiv=\"Content-Security-Policy\"", "name=\"policy\"", 1);
    let inner = test.base().join("measured.html");
    std::fs::write(&inner, page.replacen("</body>", script, 1)).unwrap();
    let outer = test.base().join("frame.html");
    let frame = format!(
        "<!DOCTYPE html><title>x</title><body><script>addEventListener('message', said => \
         document.documentElement.setAttribute('data-said', btoa(unescape(encodeURIComponent(said.data)))));</script>\
         <iframe src=\"file://{}\" width=\"{width}\" height=\"800\" style=\"border:0\"></iframe>",
        inner.display()
    );
    std::fs::write(&outer, frame).unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-sync", "--disable-background-networking", "--disable-component-update"])
        .args(["--virtual-time-budget=20000", "--window-size=1600,1000", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", test.base().join("profile").display()))
        .arg(format!("file://{}", outer.display()))
        .env("HOME", test.home())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("chromium is there");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = dom.split("data-said=\"").nth(1).and_then(|rest| rest.split('"').next());
    let said = said.unwrap_or_else(|| panic!("nothing was measured: {dom}"));
    serde_json::from_slice(&from_base64(said)).unwrap()
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut many) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|one| *one == letter).unwrap();
        (bits, many) = ((bits << 6 | u32::try_from(value).unwrap()) & 0xfff_ffff, many + 6);
        if many >= 8 {
            many -= 8;
            bytes.push(u8::try_from(bits >> many & 0xff).unwrap());
        }
    }
    bytes
}

/// U-17: on a phone nothing is wider than the page, and no label leaves its box, however long it is.
#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn u_17_the_report_fits_a_phone_in_a_browser() {
    let long = "x".repeat(70);
    let row =
        format!("src/app.txt:3 | WARNING | reliability | Line {long}{long} | Fix {long} | `src/app.txt:3`");
    let test = Test::new().play(&review("guardian cycle=1", "REJECTED", &[&row])).unaudited();
    test.git(["checkout", "-qb", &format!("feature/{long}")]);
    let task = format!("Add a line {long}{long}");
    let arguments = test.arguments(&task, &["--auto-merge", "--unattended", "--workflow", "standard"]);
    let ended = test.run(&as_strs(&arguments));
    assert_eq!(ended.code, 0, "{ended}");
    let page = test.run(&["report", &test.run_ids()[0], "--html", "--dag"]).stdout;
    for width in [320, 400, 768, 1280] {
        let seen = measured(&test, &page, width);
        assert_eq!(seen["width"], width, "{seen}");
        assert!(seen["wide"].as_u64() <= Some(width.into()), "{width}: {seen}");
        for faults in ["out", "left", "small"] {
            assert_eq!(seen[faults], serde_json::json!([]), "{width}: {seen}");
        }
        assert!(seen["boxes"].as_u64() >= Some(14), "{seen}");
    }
    // And this test would see it.
    let stiff =
        ".box { width: 120px; } .box p { white-space: nowrap; width: max-content; } h1 { width: 500px; }";
    let stiff = page.replacen("</style>", &format!("{stiff}</style>"), 1);
    let seen = measured(&test, &stiff, 400);
    assert!(seen["wide"].as_u64() > Some(400) && !seen["left"].as_array().unwrap().is_empty(), "{seen}");
}

/// R14 in a real browser: nothing an agent wrote becomes an element, runs, or makes a request. Twice: by escaping,
/// and, where that would fail, by the policy in the page's head. And the test would see it: an open page does all three.
#[test]
#[ignore = "needs chromium; `cargo xtask test` runs it"]
fn r14_m_s13_hostile_text_is_inert_in_a_browser() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let probe = probe(listener.local_addr().unwrap().port());
    let row = format!("src/app.txt:3 | WARNING | reliability | Line {probe} | Fix {probe} | `src/app.txt:3`");
    let maker = format!(
        "== maker ==\nsh echo y >> tests/check_test.sh\nwrite src/evil.txt <<END\n{probe}\nEND\ncommit Evil\nsay <<END\nDone {probe}\n\nSTATUS: DONE\nEND\n\n"
    );
    let test = Test::new().play(&(review("guardian", "REJECTED", &[&row]) + &maker)).unaudited();
    let arguments = test.arguments(&format!("Add {probe}"), &["--auto-merge", "--unattended"]);
    let ended = test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!ended.id.is_empty(), "{ended}");
    let page = test.run(&["report", &ended.id, "--html", "--dag"]).stdout;
    assert!(page.contains("data-owned"), "the probe is on the page, as text");

    let (dom, console, requests) = browse(&test, &page, &listener);
    assert!(dom.contains("The cycles"), "the page was loaded\n{console}");
    assert_eq!(requests, 0, "nothing is requested");
    for element in ["<script", "<img", "<iframe", "<object", "<link", "data-owned=\""] {
        assert!(!dom.contains(element), "{element} came to be");
    }
    assert!(!console.contains("Content Security Policy"), "the page keeps its own policy\n{console}");

    // Were it not escaped, the policy would still hold.
    let raw = page.replacen("<main>", &format!("<main>{probe}"), 1);
    let (dom, console, requests) = browse(&test, &raw, &listener);
    assert!(dom.contains("<img") && !dom.contains("data-owned=\""), "planted, and did not run\n{console}");
    assert_eq!(requests, 0, "{console}");
    assert!(console.contains("Content Security Policy"), "{console}");

    // And were there no policy either, this test would see it.
    let open = format!("<!DOCTYPE html><title>x</title><body>{probe}");
    let (dom, _, requests) = browse(&test, &open, &listener);
    assert!(dom.contains("data-owned=\"") && requests > 0, "the probe works: {requests} requests");
}
