//! A forge that refuses, loses answers or is large, and people and agents who write what they should not
//! (docs/pull-requests.md).

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::forge::{FINDING, KINDS, approved, approves, counts, kill, post, push, reviewed, scene};
use crate::forge_server::{Fault, PERSON, StandIn, StandInThread};
use crate::harness::{Test, each, review};

const OTHER: &str =
    "src/app.txt:4 | WARNING | testing | The fourth line is not tested. | Test it. | `line 4`";

/// How many checks and statuses there are.
fn results(forge: &StandIn) -> usize {
    let content = forge.content();
    content.checks.len() + content.statuses.len()
}

#[test]
fn f_43_a_line_that_the_forge_does_not_show_moves_to_the_summary() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        forge.content().hidden.push(("src/app.txt", 2));
        let test = test.play(&review("guardian", "REJECTED", &[FINDING, OTHER]));
        let first = post(&test);
        assert_eq!(first.code, 0, "{kind}\n{first}");
        // GitLab has a request for each thread; the others refuse all of them for one line.
        let (threads, without) = if kind == "gitlab" { (1, "1 finding") } else { (0, "2 findings") };
        assert!(
            first.stderr.contains(&format!("no thread for {without}, only the summary")),
            "{kind}\n{first}"
        );
        assert_eq!(counts(&forge), (1, threads, threads, 0), "{kind}");
        {
            let content = forge.content();
            let summary = &content.summaries.iter().find(|(_, body)| !body.is_empty()).unwrap().1;
            assert!(summary.contains("The second line is wrong"), "{kind}\n{summary}");
        }
        assert_eq!(results(&forge), 1, "{kind}");
        // Known from the summary, so a fresh clone does not ask again.
        std::fs::remove_dir_all(test.home().join(".local/state/archeflow/forge")).unwrap();
        let sent = forge.content().log.len();
        let again = post(&test);
        assert!(!again.stderr.contains("no thread for"), "{kind}\n{again}");
        assert_eq!(counts(&forge), (1, threads, threads, 0), "{kind}: nothing is new");
        let log = forge.content().log.split_off(sent);
        assert!(
            log.iter()
                .all(|line| line.contains("check") || line.contains("status") || line.contains("sarif")),
            "{kind} {log:?}"
        );
    });
}

#[test]
fn f_44_a_request_that_was_performed_is_not_repeated_though_its_answer_was_lost() {
    let lost = [
        ("502 Bad Gateway", "", "<html>"),
        ("200 OK", "content-length: 500\r\n", "{"),
        ("200 OK", "", "{\"id\":"),
        ("200 OK", "", "<html>hello"),
    ];
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let id = reviewed(&test);
        let posts = ["review", "--run", &id, "--post"];
        let request = match kind {
            "github" => "POST /api/v3/repos/o/r/pulls/7/reviews",
            "gitlab" => "POST /api/v4/projects/o%2Fr/merge_requests/7/discussions",
            _ => "POST /api/v1/repos/o/r/pulls/7/reviews",
        };
        let (status, headers, body) = lost[KINDS.iter().position(|known| *known == kind).unwrap()];
        forge.content().faults.push(Fault::after(request, status, headers, body));
        test.run(&posts).refused(30, &["To post it: archeflow review --run"]);
        assert_eq!(counts(&forge).1, 1, "{kind}");
        let posted = test.run(&posts);
        assert_eq!(posted.code, 0, "{kind}\n{posted}");
        assert_eq!(counts(&forge), (1, 1, 1, 0), "{kind}");
        assert_eq!(results(&forge), 1, "{kind}");

        let (test, id) = approved(test, &forge);
        let request = match kind {
            "github" => "POST /api/v3/repos/o/r/pulls",
            "gitlab" => "POST /api/v4/projects/o%2Fr/merge_requests",
            _ => "POST /api/v1/repos/o/r/pulls",
        };
        for (status, headers, body) in lost {
            forge.content().faults.push(Fault::after(request, status, headers, body));
            let failed = test.run(&["pr", &id, "--push"]);
            assert!(matches!(failed.code, 0 | 30), "{kind}\n{failed}");
            assert_eq!(forge.content().opened.len(), 1, "{kind} {status}");
            forge.content().faults.clear();
        }
    });
}

#[test]
fn f_45_a_large_request_is_read_to_its_end() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        post(&test);
        let strangers = |n: u64| StandInThread {
            path: "src/app.txt".to_owned(),
            line: 100 + n,
            commit: forge.content().head.clone(),
            resolved_by: None,
            comments: vec![(PERSON, "A remark.".to_owned())],
        };
        let many: Vec<StandInThread> = (0..250).map(strangers).collect();
        {
            let mut content = forge.content();
            content.threads.splice(0..0, many);
            let own = content.threads.last_mut().unwrap();
            own.comments.extend((0..150).map(|n| (PERSON, format!("Reply {n}"))));
            content.summaries.splice(0..0, (0..250).map(|n| (PERSON, format!("Word {n}"))));
        }
        std::fs::remove_dir_all(test.home().join(".local/state/archeflow/forge")).unwrap();
        let known = counts(&forge);
        let again = post(&test);
        assert!(again.stderr.contains(": 0 new threads, 1 still open."), "{kind}\n{again}");
        assert_eq!(counts(&forge), known, "{kind}");
        // The last word of 151 is a person's.
        push(&test, &forge, "line two\n", "line 2, put right\n");
        let test = approves(test);
        let gone = post(&test);
        assert!(gone.stderr.contains("1 not raised any more but left open."), "{kind}\n{gone}");
        assert_eq!(counts(&forge), known, "{kind}");
    });
}

#[test]
fn f_46_a_token_follows_no_redirect_and_no_answer_is_read_without_end() {
    let (test, forge) = scene("github");
    let id = reviewed(&test);
    let posts = ["review", "--run", &id, "--post"];
    let pull = "GET /api/v3/repos/o/r/pulls/7";
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = elsewhere.local_addr().unwrap().port();
    let met = Arc::new(AtomicUsize::new(0));
    let counts_visits = Arc::clone(&met);
    std::thread::spawn(move || {
        for _ in elsewhere.incoming() {
            counts_visits.fetch_add(1, Ordering::SeqCst);
        }
    });
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        for request in [pull, "POST /api/v3/repos/o/r/pulls/7/reviews"] {
            let headers = format!("location: http://localhost:{port}/repos/o/r/pulls/7\r\n");
            forge.content().faults.push(Fault::new(request, status, &headers, ""));
            test.run(&posts).refused(30, &["redirects elsewhere, which is not followed"]);
        }
    }
    assert_eq!(met.load(Ordering::SeqCst), 0, "nobody was asked there");
    let endless = format!("\"{}", "x".repeat(33 * 1024 * 1024));
    forge.content().faults.push(Fault::new(pull, "200 OK", "", &endless));
    test.run(&posts).refused(30, &["the answer has more than 33554432 bytes"]);
    assert_eq!(counts(&forge), (0, 0, 0, 0));
}

/// GitHub says 403 to what a token may not do, and to too many requests.
#[test]
fn f_47_a_limit_is_no_missing_permission() {
    let checks = "POST /api/v3/repos/o/r/check-runs";
    let refused = [
        ("403 Forbidden", "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 99999999999\r\n", "{}"),
        ("403 Forbidden", "", r#"{"message":"You have exceeded a secondary rate limit."}"#),
    ];
    for (status, headers, body) in refused {
        let (test, forge) = scene("github");
        forge.content().faults.push(Fault::new(checks, status, headers, body));
        test.look(&["--pr", "7", "--post"]).refused(30, &["takes no more requests for now"]);
        assert_eq!(forge.content().statuses.len(), 0, "a status is no way around a limit");
        let id = test.run_ids().pop().unwrap();
        let posted = test.run(&["review", "--run", &id, "--post"]);
        assert_eq!((posted.code, counts(&forge)), (0, (1, 1, 1, 0)), "{posted}");
    }
    let (test, forge) = scene("github");
    let (headers, body) = ("x-accepted-github-permissions: pull_requests=write\r\n", "{}");
    let reviews = "POST /api/v3/repos/o/r/pulls/7/reviews";
    forge.content().faults.push(Fault::new(reviews, "403 Forbidden", headers, body));
    test.look(&["--pr", "7", "--post"]).refused(30, &["the token needs pull_requests=write"]);
}

/// Everything that is posted, of whatever kind.
fn texts(forge: &StandIn) -> Vec<String> {
    fn strings(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::String(text) => all.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| strings(value, all)),
            Value::Object(values) => values
                .iter()
                .filter(|(name, _)| {
                    !matches!(name.as_str(), "query" | "sarif" | "context" | "message" | "title")
                })
                .for_each(|(_, value)| strings(value, all)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut all = Vec::new();
    let content = forge.content();
    let sent = content.asked.iter().filter(|asked| asked["method"] != "GET");
    sent.for_each(|asked| strings(&asked["body"], &mut all));
    all
}

#[test]
fn f_48_text_of_agents_does_nothing_on_a_forge() {
    let poison = "/close fixes #1 GH-2 !3 @root [issue:4] https://e.example ![i](http://e.example/p.png) \
        <!-- archeflow:abcd1234 --> <img src=x> ```suggestion rm ``` \\`@ops\\` \u{202e}reversed\u{202c}";
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let found =
            format!("src/app.txt:2 | CRITICAL | reliability | {poison} | {poison} | `line two` {poison}");
        let outside =
            format!("src/app.txt:19 | WARNING | reliability | {poison} | {poison} | `line 19` {poison}");
        let test = test.play(&review("guardian", "REJECTED", &[&found, &outside]));
        let posted = post(&test);
        assert_eq!((posted.code, counts(&forge).1), (0, 1), "{kind}\n{posted}");
        // The report of a run holds its task, as a pull request's text does.
        let (test, _) = approved(test, &forge);
        let arguments = test.arguments(poison, &["--unattended"]);
        test.run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>());
        let opened = test.run(&["pr", "--push"]);
        assert_eq!((opened.code, forge.content().opened.len()), (0, 1), "{kind}\n{opened}");
        let all = texts(&forge).join("\n\n");
        assert!(all.contains("reversed"), "{kind}: the text itself is there\n{all}");
        for (line, text) in all.lines().map(|line| (line, code_removed(line))) {
            assert!(!line.starts_with('/'), "{kind}: a command\n{line}");
            let is_mark = line.starts_with("<!-- archeflow") && line.ends_with(" -->");
            assert!(is_mark || !text.contains("<!--"), "{kind}\n{line}");
            for live in ["@root", "@ops", "#1", "GH-2", "!3", "[issue:4]", "://", "<img", "![", "\u{202e}"] {
                assert!(!text.contains(live), "{kind}: {live}\n{line}");
            }
            assert!(!line.starts_with("```suggestion"), "{kind}\n{line}");
        }
    });
}

/// A line of Markdown without its spans of code, which the program itself encloses in single backticks.
fn code_removed(line: &str) -> String {
    let plain = line.replace("\\`", "");
    plain.split('`').step_by(2).collect()
}

#[test]
fn f_49_a_push_is_of_one_branch_by_no_force_and_runs_no_hook() {
    let (test, forge) = scene("github");
    let (test, id) = approved(test, &forge);
    let bare = test.base().join("bare.git");
    let refs = || test.git(["--git-dir", bare.to_str().unwrap(), "for-each-ref", "--format=%(refname)"]);
    let branch = test.git(["for-each-ref", "--format=%(refname)", "refs/heads/archeflow"]);
    assert_eq!(branch.lines().count(), 1, "{branch}");
    test.git(["tag", "-a", "-m", "v1", "v1", "main"]);
    let hook = test.repo.join(".git/hooks/pre-push");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ntouch ../hooked\nexit 1\n").unwrap();
    test.sh("chmod +x .git/hooks/pre-push");

    // Somebody else has pushed there: nothing is overwritten.
    let theirs = test.git(["commit-tree", "-m", "Theirs", "-p", "main", "main^{tree}"]);
    test.git(["push", "-q", "--no-verify", bare.to_str().unwrap(), &format!("{theirs}:{branch}")]);
    test.run(&["pr", &id]).refused(10, &["on the forge, not at", "and nothing was pushed"]);
    test.run(&["pr", &id, "--push"]).refused(30, &["the branch was not pushed", "non-fast-forward"]);
    assert_eq!(test.git(["--git-dir", bare.to_str().unwrap(), "rev-parse", &branch]), theirs);
    assert_eq!(forge.content().log, Vec::<String>::new());

    test.git(["--git-dir", bare.to_str().unwrap(), "update-ref", "-d", &branch]);
    test.git(["config", "push.followTags", "true"]);
    test.git(["config", "push.default", "matching"]);
    let pushed = test.run(&["pr", &id, "--push"]);
    assert_eq!(pushed.code, 0, "{pushed}");
    assert!(pushed.stderr.contains("Pushed archeflow/") && pushed.stdout.starts_with("Opened: "), "{pushed}");
    assert_eq!(refs(), branch, "one branch, and no tag");
    assert!(!test.base().join("hooked").exists(), "no hook ran");
    // Killed before or after: the request is opened once.
    kill(&test, "forge.sent:1", &["pr", &id, "--push"]);
    assert_eq!(forge.content().opened.len(), 1);
}

#[test]
fn f_50_a_short_form_of_an_address_is_replaced_as_git_would() {
    let (test, forge) = scene("github");
    test.git(["config", &format!("url.http://127.0.0.1:{}/.insteadOf", forge.port), "work:"]);
    test.git(["remote", "set-url", "origin", "work:o/r"]);
    let posted = post(&test);
    assert_eq!((posted.code, counts(&forge)), (0, (1, 1, 1, 0)), "{posted}");
}

#[test]
fn f_52_a_request_of_a_fork_is_not_taken_for_ours() {
    each(["gitlab", "gitea", "forgejo"], |kind| {
        let (test, forge) = scene(kind);
        let (test, id) = approved(test, &forge);
        let branch = test.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/archeflow"]);
        forge.content().opened.push(json!({
            "number": 39, "iid": 39, "state": "open", "sha": "2".repeat(40), "html_url": "https://fork.example.org",
            "web_url": "https://fork.example.org", "head": { "ref": branch, "sha": "2".repeat(40), "repo_id": 9 },
            "base": { "ref": "main", "repo_id": 1 }, "source_project_id": 9, "target_project_id": 1,
        }));
        let opened = test.run(&["pr", &id, "--push"]);
        assert!(opened.stdout.starts_with("Opened: https://forge.example.org"), "{kind}\n{opened}");
        assert_eq!(forge.content().opened.len(), 2, "{kind}");
    });
}

/// Anybody can open a request from a fork.
#[test]
fn f_53_a_request_brings_no_settings_of_its_own() {
    let (test, forge) = scene("github");
    let settings = "forge: {kind: gitlab, url: 'https://e.example'}\nagents: {default: 'cmd:touch ../ran'}\n";
    test.file(".archeflow/config.yaml", settings);
    test.file(".archeflow/baseline.json", "no json at all");
    test.file(".archeflow/archetypes/guardian.md", "# Nothing to see\n");
    test.git(["add", "-f", ".archeflow"]);
    forge.content().head = test.commit("Judge me by these");
    let posted = post(&test);
    assert_eq!(posted.code, 0, "{posted}");
    assert_eq!(counts(&forge), (1, 1, 1, 0));
    let summary = forge.content().summaries[0].1.clone();
    assert!(summary.contains("`own_state_changed`"), "and it is said\n{summary}");
    assert!(!test.base().join("ran").exists());
}

/// A token of a workflow may comment, and yet not resolve.
#[test]
fn f_51_a_thread_that_may_not_be_resolved_does_not_stop_the_rest() {
    let (test, forge) = scene("github");
    post(&test);
    push(&test, &forge, "line two\n", "line 2, put right\n");
    let test = approves(test);
    let body = r#"{"data":{"resolveReviewThread":null},"errors":[{"message":"Resource not accessible"}]}"#;
    let resolve = "POST /api/graphql mutation Resolve(";
    forge.content().faults.push(Fault::new(resolve, "200 OK", "", body));
    let refused = post(&test);
    assert_eq!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains("a thread was not resolved"), "{refused}");
    assert_eq!((counts(&forge), results(&forge)), ((2, 1, 2, 0), 2), "one reply, and a check");
    post(&test);
    assert_eq!(counts(&forge), (2, 1, 2, 1), "it is tried again, and not said again");
}

/// The requests of reviews and of a run, each once, without what differs from time to time.
fn recorded(test: &Test, forge: &StandIn) -> Vec<Value> {
    let ids = test.run_ids();
    let known = |text: &str| {
        let text = ids.iter().fold(text.to_owned(), |text, id| text.replace(id.as_str(), "2026-01-01-x"));
        commits_removed(&text).replace(env!("CARGO_PKG_VERSION"), "0.0.0")
    };
    let mut all: Vec<Value> = Vec::new();
    for asked in forge.content().asked.clone() {
        let mut asked: Value = serde_json::from_str(&known(&asked.to_string())).unwrap();
        let body = &mut asked["body"];
        // A packed file, and a report with times in it.
        if body["sarif"].is_string() {
            body["sarif"] = "H4sIAAAA".into();
        }
        if body["title"].is_string() {
            let name = if forge.kind == "gitlab" { "description" } else { "body" };
            body[name] = "The report.".into();
        }
        let kind = |one: &Value| {
            let query = one["body"]["query"].as_str().map(str::to_owned);
            (
                one["method"].clone(),
                one["path"].clone(),
                query,
                one["body"]["output"]["annotations"].is_null(),
            )
        };
        if !all.iter().any(|one| kind(one) == kind(&asked)) {
            all.push(asked);
        }
    }
    all
}

/// Names of commits differ by the time they were made: whole ones, and their first ten letters.
fn commits_removed(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_hexdigit() && !c.is_ascii_uppercase() {
            word.push(c);
            continue;
        }
        let is_commit = word.len() == 40 || (word.len() == 10 && word.chars().any(|c| c.is_ascii_digit()));
        out.push_str(&if is_commit { "1".repeat(word.len()) } else { word.clone() });
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// `cargo xtask test schemas` holds these files against the forges' own descriptions; `UPDATE=1` writes them.
#[test]
fn f_42_the_requests_are_those_that_are_recorded() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        forge.content().hidden.push(("src/app.txt", 5));
        let third = "src/app.txt:5 | WARNING | testing | The fifth line is not tested. | Test it. | `line 5`";
        let test = test.play(&review("guardian", "REJECTED", &[FINDING]));
        post(&test);
        // A check whose annotations did not all arrive.
        if let Some(check) = forge.content().checks.first_mut() {
            check["output"]["annotations_count"] = 0.into();
        }
        let id = test.run_ids().pop().unwrap();
        test.run(&["review", "--run", &id, "--post"]);
        push(&test, &forge, "line two\n", "line 2, put right\n");
        let test = approves(test);
        post(&test);
        push(&test, &forge, "line 2, put right\n", "line two\n");
        forge.content().no_checks = true;
        let test = test.play(&review("guardian", "REJECTED", &[FINDING, third]));
        post(&test);
        let (test, id) = approved(test, &forge);
        let opened = test.run(&["pr", &id, "--push", "--draft", "--title", "Do it"]);
        assert_eq!(opened.code, 0, "{kind}\n{opened}");
        let fresh = serde_json::to_string_pretty(&recorded(&test, &forge)).unwrap() + "\n";
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
        let file = place.join(format!("forge.{kind}.json"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &fresh).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            kept, fresh,
            "{kind}: the program sends other requests; look at them, then run with UPDATE=1"
        );
    });
}
