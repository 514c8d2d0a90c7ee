//! Reviews and runs on a forge (docs/pull-requests.md), against one of our own that remembers what is posted.

use std::process::Output;

use serde_json::Value;

use crate::forge_server::{Fault, PERSON, StandIn, TOKEN};
use crate::harness::{Outcome, Test, each, review};
use crate::user::PROGRAM;

pub(crate) const FINDING: &str = "src/app.txt:2 | CRITICAL | reliability | The second line is wrong, @everyone see #1. | Put it right. | `line two`";
pub(crate) const KINDS: [&str; 4] = ["github", "gitlab", "gitea", "forgejo"];

pub(crate) fn rejects(test: Test) -> Test {
    test.play(&review("guardian", "REJECTED", &[FINDING]))
}

pub(crate) fn approves(test: Test) -> Test {
    test.play(&review("guardian", "APPROVED", &[]))
}

/// A repository with a request on this forge, whose second line is changed.
pub(crate) fn scene(kind: &'static str) -> (Test, StandIn) {
    let forge = StandIn::start(kind);
    let test = Test::new().config(&forge.settings());
    let name = match kind {
        "github" => "GH_ENTERPRISE_TOKEN",
        "gitlab" => "GITLAB_TOKEN",
        "gitea" => "GITEA_TOKEN",
        _ => "FORGEJO_TOKEN",
    };
    (prepared(test.env(name, TOKEN), &forge), forge)
}

fn prepared(test: Test, forge: &StandIn) -> Test {
    test.git(["remote", "add", "origin", &format!("http://127.0.0.1:{}/o/r.git", forge.port)]);
    forge.content().base = test.git(["rev-parse", "HEAD"]);
    test.git(["checkout", "-q", "-b", "topic"]);
    push(&test, forge, "line 2\n", "line two\n");
    rejects(test)
}

/// A new commit on the request's branch.
pub(crate) fn push(test: &Test, forge: &StandIn, from: &str, to: &str) {
    let text = test.read("src/app.txt");
    assert!(text.contains(from), "{text}");
    test.file("src/app.txt", text.replace(from, to));
    forge.content().head = test.commit("Change the second line");
}

pub(crate) fn post(test: &Test) -> Outcome {
    let outcome = test.look(&["--pr", "7", "--post"]);
    assert!(!format!("{outcome}").contains(TOKEN), "{outcome}");
    outcome
}

/// What is on the forge: summaries that say something, threads, comments in all threads, and how many are resolved.
pub(crate) fn counts(forge: &StandIn) -> (usize, usize, usize, usize) {
    let content = forge.content();
    let summaries = content.summaries.iter().filter(|(_, body)| !body.is_empty()).count();
    let comments = content.threads.iter().map(|thread| thread.comments.len()).sum();
    let resolved = content.threads.iter().filter(|thread| thread.resolved_by.is_some()).count();
    (summaries, content.threads.len(), comments, resolved)
}

#[test]
fn f_30_a_finding_has_one_thread_over_many_pushes() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let first = post(&test);
        assert_eq!(first.code, 0, "{kind}\n{first}");
        assert!(first.stderr.contains(": 1 new thread."), "{kind}\n{first}");
        assert_eq!(counts(&forge), (1, 1, 1, 0), "{kind}");
        {
            let content = forge.content();
            let thread = &content.threads[0];
            assert_eq!((thread.path.as_str(), thread.line), ("src/app.txt", 2), "{kind}");
            let body = &thread.comments[0].1;
            assert!(body.trim_end().ends_with(" -->") && body.contains("<!-- archeflow:"), "{body}");
            assert!(body.contains("@&#8203;everyone") && body.contains("\\#&#8203;1"), "{body}");
        }

        let again = post(&test);
        assert!(again.stderr.contains(": 0 new threads, 1 still open."), "{kind}\n{again}");
        assert_eq!(counts(&forge), (1, 1, 1, 0), "{kind}: nothing is posted twice");

        // The line is fixed, and the reviewer that raised it looked.
        push(&test, &forge, "line two\n", "line 2, put right\n");
        let test = approves(test);
        let fixed = post(&test);
        assert!(fixed.stderr.contains("1 resolved"), "{kind}\n{fixed}");
        assert_eq!(counts(&forge), (2, 1, 2, 1), "{kind}: one reply, and it is closed");
        post(&test);
        assert_eq!(counts(&forge), (2, 1, 2, 1), "{kind}: and once");

        push(&test, &forge, "line 2, put right\n", "line two\n");
        let test = rejects(test);
        let back = post(&test);
        assert!(back.stderr.contains(": 0 new threads, 1 opened again."), "{kind}\n{back}");
        assert_eq!(counts(&forge), (3, 1, 3, 0), "{kind}: it is open again");

        forge.content().threads[0].resolved_by = Some(PERSON);
        let left = post(&test);
        assert_eq!(left.code, 0, "{kind}\n{left}");
        assert_eq!(counts(&forge), (3, 1, 3, 1), "{kind}: a person's decision stands");

        // A thread that a person deleted is not posted again.
        forge.content().threads.clear();
        post(&test);
        assert_eq!(counts(&forge).1, 0, "{kind}");
    });
}

#[test]
fn f_31_a_thread_stays_open_if_a_person_replied_last_or_the_line_is_as_it_was() {
    each(["github", "gitlab", "gitea"], |kind| {
        let (test, forge) = scene(kind);
        post(&test);
        // Missed, not fixed.
        let test = approves(test);
        let missed = post(&test);
        assert_eq!(counts(&forge), (1, 1, 1, 0), "{kind}\n{missed}");
        forge.content().threads[0].comments.push((PERSON, "I will look at it.".to_owned()));
        push(&test, &forge, "line two\n", "line 2, put right\n");
        post(&test);
        assert_eq!(counts(&forge), (1, 1, 2, 0), "{kind}: a person has the last word");
        let others = forge.content().log.iter().filter(|line| line.contains("resolve")).count();
        assert_eq!(others, 0, "{kind}");
    });
}

#[test]
fn f_32_threads_of_others_are_never_touched_and_their_markers_say_nothing() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        post(&test);
        {
            // Somebody posts our comments, so that the finding seems to be there already.
            let mut content = forge.content();
            content.threads[0].comments[0].0 = PERSON;
            content.summaries.iter_mut().for_each(|summary| summary.0 = PERSON);
        }
        let state = test.home().join(".local/state/archeflow/forge");
        std::fs::remove_dir_all(&state).unwrap();
        let known = counts(&forge);
        let posted = post(&test);
        assert!(posted.stderr.contains(": 1 new thread."), "{kind}\n{posted}");
        // On Gitea, comments at one line are one conversation: the stranger's.
        let threads = if matches!(kind, "gitea" | "forgejo") { 1 } else { 2 };
        assert_eq!(counts(&forge), (known.0 + 1, threads, 2, 0), "{kind}");
        std::fs::remove_dir_all(&state).unwrap();
        let again = post(&test);
        assert!(again.stderr.contains(": 0 new threads, 1 still open."), "{kind}\n{again}");
        assert_eq!(counts(&forge), (known.0 + 1, threads, 2, 0), "{kind}: ours is known behind it");
    });
}

#[test]
fn f_33_an_old_gitea_gets_a_reply_instead() {
    let (test, forge) = scene("gitea");
    forge.content().is_old = true;
    post(&test);
    push(&test, &forge, "line two\n", "line 2, put right\n");
    let test = approves(test);
    post(&test);
    assert_eq!(counts(&forge), (2, 1, 2, 0));
    post(&test);
    assert_eq!(counts(&forge), (2, 1, 2, 0), "said once");
}

#[test]
fn f_34_the_result_is_a_check_with_annotations_or_a_status() {
    let (test, forge) = scene("github");
    post(&test);
    {
        let content = forge.content();
        let check = &content.checks[0];
        assert_eq!(
            (&check["name"], &check["conclusion"]),
            (&Value::from("archeflow"), &Value::from("failure"))
        );
        let note = &check["output"]["annotations"][0];
        assert_eq!((&note["path"], &note["start_line"]), (&Value::from("src/app.txt"), &Value::from(2)));
        assert_eq!((content.uploads, content.statuses.len()), (1, 0));
    }
    let id = test.run_ids().pop().unwrap();
    test.run(&["review", "--run", &id, "--post"]);
    assert_eq!(published(&forge), (1, 1), "once for each review");

    let (test, forge) = scene("github");
    forge.content().no_checks = true;
    post(&test);
    assert_eq!(forge.content().statuses[0]["state"], "failure");
    assert_eq!(forge.content().statuses[0]["context"], "archeflow");
}

/// How many checks and uploads there are.
fn published(forge: &StandIn) -> (usize, usize) {
    let content = forge.content();
    (content.checks.len(), content.uploads)
}

/// A review that is done, and not posted.
pub(crate) fn reviewed(test: &Test) -> String {
    let dry = test.look(&["--pr", "7", "--post", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry}");
    test.run_ids().pop().unwrap()
}

#[test]
fn f_35_a_dry_run_prints_requests_and_sends_none() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let id = reviewed(&test);
        let dry = test.run(&["review", "--run", &id, "--post", "--dry-run"]);
        assert!(
            dry.stdout.contains("POST http://127.0.0.1:") && dry.stdout.contains("The second line"),
            "{dry}"
        );
        assert!(dry.stdout.ends_with("Nothing was sent.\n") && !dry.stdout.contains(TOKEN), "{dry}");
        let json = test.run(&["review", "--run", &id, "--post", "--dry-run", "--json"]);
        let requests: Value = serde_json::from_str(&json.stdout).unwrap();
        assert!(requests["requests"].as_array().unwrap().len() >= 2, "{json}");
        assert_eq!(forge.content().log, Vec::<String>::new(), "{kind}");
    });
}

#[test]
fn f_36_a_forge_that_answers_badly_harms_nothing_and_the_review_is_posted_later() {
    let (test, forge) = scene("github");
    let id = reviewed(&test);
    let posts = ["review", "--run", &id, "--post"];
    let pull = "GET /api/v3/repos/o/r/pulls/7";
    let reviews = "POST /api/v3/repos/o/r/pulls/7/reviews";
    let graphql = "POST /api/graphql";
    let rows = [
        (
            pull,
            "401 Unauthorized",
            "",
            r#"{"message":"Bad credentials"}"#,
            "answers 401 to GET /api/v3/repos/o/r/pulls/7: Bad credentials",
        ),
        (pull, "403 Forbidden", "", r#"{"message":"Resource not accessible"}"#, "answers 403"),
        (pull, "404 Not Found", "", "{}", "answers 404"),
        (pull, "429 Too Many Requests", "retry-after: 86400\r\n", "{}", "try again in 86400 s"),
        (pull, "500 Internal Server Error", "", "<html>oops", "answers 500"),
        (pull, "200 OK", "", "<html>hello", "can't be read"),
        (pull, "200 OK", "", "[]", "describes no pull request"),
        (pull, "302 Found", "location: http://127.0.0.1:1/\r\n", "", "redirects elsewhere"),
        (
            graphql,
            "200 OK",
            "",
            r#"{"data":null,"errors":[{"message":"Something went wrong"}]}"#,
            "Something went wrong",
        ),
        (graphql, "200 OK", "", r#"{"data":{}}"#, "no list of that name"),
        (reviews, "502 Bad Gateway", "", "", "answers 502"),
    ];
    for (request, status, headers, body, words) in rows {
        forge.content().faults.push(Fault::new(request, status, headers, body));
        let failed = test.run(&posts);
        assert_eq!(failed.code, 30, "{status}\n{failed}");
        let hint = format!("archeflow review --run {id} --post");
        assert!(failed.stderr.contains(words) && failed.stderr.contains(&hint), "{status}\n{failed}");
        assert_eq!(counts(&forge), (0, 0, 0, 0), "{status}");
    }
    // One that asks for a moment is given it.
    for request in [pull, reviews] {
        let (status, headers) = ("429 Too Many Requests", "retry-after: 0\r\n");
        forge.content().faults.push(Fault::new(request, status, headers, "{}"));
    }
    let posted = test.run(&posts);
    assert_eq!(posted.code, 0, "{posted}");
    assert_eq!(counts(&forge), (1, 1, 1, 0));
}

#[test]
fn f_37_nothing_is_posted_twice_after_a_crash() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let id = reviewed(&test);
        for place in ["forge.begun:1", "forge.sent:1", "forge.sent:2", "forge.sent:3"] {
            let killed = kill(&test, place, &["review", "--run", &id, "--post"]);
            // The last places are not reached any more when everything is posted.
            assert!(!killed.status.success() || place.ends_with(['2', '3']), "{kind} {place}");
        }
        let posted = test.run(&["review", "--run", &id, "--post"]);
        assert_eq!(posted.code, 0, "{kind}\n{posted}");
        assert_eq!(counts(&forge), (1, 1, 1, 0), "{kind}");
        // Between the reply and the request that closes, and before.
        push(&test, &forge, "line two\n", "line 2, put right\n");
        let test = approves(test);
        let id = reviewed(&test);
        for place in ["forge.sent:1", "forge.sent:2", "forge.sent:1"] {
            kill(&test, place, &["review", "--run", &id, "--post"]);
        }
        test.run(&["review", "--run", &id, "--post"]);
        assert_eq!(counts(&forge), (2, 1, 2, 1), "{kind}");
    });
}

pub(crate) fn kill(test: &Test, place: &str, arguments: &[&str]) -> Output {
    let mut command = test.command(PROGRAM);
    command.args(arguments).current_dir(&test.repo).env("ARCHEFLOW_FAILPOINT", place).output().unwrap()
}

#[test]
fn f_38_a_request_that_moved_or_is_closed_gets_no_old_review() {
    let (test, forge) = scene("github");
    let id = reviewed(&test);
    push(&test, &forge, "line 9\n", "line nine\n");
    test.run(&["review", "--run", &id, "--post"]).refused(21, &["the review is of", "Review it again"]);
    forge.content().is_closed = true;
    test.run(&["review", "--run", &id, "--post"]).refused(2, &["is closed"]);
    test.look(&["--pr", "7", "--post"]).refused(2, &["is closed"]);
    forge.content().is_closed = false;
    forge.content().head = "1".repeat(40);
    test.look(&["--pr", "7", "--post"]).refused(2, &["git fetch origin pull/7/head"]);
    assert_eq!(forge.content().log, Vec::<String>::new());
}

#[test]
fn f_39_posting_is_typed_and_needs_a_forge_a_token_and_a_request() {
    let (test, forge) = scene("github");
    test.look(&["--post"]).refused(2, &["--post says nothing without a pull request"]);
    test.look(&["--pr", "7", "--dry-run"]).refused(2, &["--post"]);
    let inside = |arguments: &[&str]| {
        let output = test
            .command(PROGRAM)
            .args(arguments)
            .current_dir(&test.repo)
            .env("ARCHEFLOW_RUN_ID", "r")
            .env("ARCHEFLOW_TAG", "x")
            .output();
        output.unwrap()
    };
    for arguments in [&["review", "--pr", "7", "--post"][..], &["pr", "x"]] {
        let refused = inside(arguments);
        assert_eq!(refused.status.code(), Some(21), "{}", String::from_utf8_lossy(&refused.stderr));
    }
    // One that is meant for github.com is not sent to another host.
    let bare = test.env("GH_ENTERPRISE_TOKEN", "").env("GITHUB_TOKEN", TOKEN);
    bare.look(&["--pr", "7", "--post"]).refused(30, &["there is no token for 127.0.0.1"]);
    let odd = bare.env("GH_ENTERPRISE_TOKEN", "two\nlines");
    odd.look(&["--pr", "7", "--post"]).refused(30, &["GH_ENTERPRISE_TOKEN can't be sent"]);
    odd.git(["remote", "set-url", "origin", "https://git.example.org/o/r"]);
    odd.look(&["--pr", "7", "--post"]).refused(2, &["git.example.org is no forge", "forge: {kind"]);
    odd.git(["remote", "remove", "origin"]);
    odd.look(&["--pr", "7", "--post"]).refused(2, &["is on no forge"]);
    assert_eq!(forge.content().log, Vec::<String>::new());
}

#[test]
fn f_40_agents_never_see_the_token() {
    let (test, forge) = scene("github");
    let answer = review("guardian", "REJECTED", &[FINDING]);
    let asks = answer.replacen("== guardian ==\n", "== guardian ==\nsh env > {base}/seen; true\n", 1);
    let test = test.play(&asks);
    let outcome = post(&test);
    assert_eq!(outcome.code, 0, "{outcome}");
    let seen = std::fs::read_to_string(test.base().join("seen")).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains(TOKEN), "{seen}");
    assert_eq!(counts(&forge).1, 1);
    // Nor does any file hold it: journal, record, or what agents were shown.
    let search = |text: &str| {
        let found =
            test.command("grep").args(["-rlsF", "-D", "skip", text]).arg(test.base()).output().unwrap();
        String::from_utf8_lossy(&found.stdout).into_owned()
    };
    assert_eq!(search(TOKEN), "");
    assert!(search("The second line is wrong").contains("events"), "the search finds what is there");
}

/// A run whose branch waits for a person, and a repository on the forge that it can be pushed to.
pub(crate) fn approved(test: Test, forge: &StandIn) -> (Test, String) {
    test.git(["checkout", "-q", "main"]);
    let bare = test.base().join("bare.git");
    test.git(["init", "-q", "--bare", bare.to_str().unwrap()]);
    forge.content().bare = bare.clone();
    test.git([
        "config",
        &format!("url.{}.pushInsteadOf", bare.display()),
        &format!("http://127.0.0.1:{}/o/r.git", forge.port),
    ]);
    // After a push git knows where the branch is on the remote.
    let test = test.play("").meanwhile(&["ref:refs/remotes/origin", "git:logs/refs/remotes"]);
    let id = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10).id;
    (test, id)
}

#[test]
fn f_41_a_request_of_a_run_is_opened_once_its_branch_is_there() {
    each(KINDS, |kind| {
        let (test, forge) = scene(kind);
        let (test, id) = approved(test, &forge);
        test.run(&["pr", &id]).refused(10, &["is not on the forge", "git push origin", "--push"]);
        assert_eq!(forge.content().log, Vec::<String>::new(), "{kind}");
        let dry = test.run(&["pr", &id, "--push", "--dry-run"]);
        for words in ["git push origin ", "POST http://", "Nothing was sent."] {
            assert!(dry.stdout.contains(words), "{kind}: {words}\n{dry}");
        }
        assert_eq!(forge.content().log, Vec::<String>::new(), "{kind}");
        assert_eq!(test.git(["--git-dir", "../bare.git", "for-each-ref"]), "", "{kind}");
        kill(&test, "forge.begun:1", &["pr", &id, "--push"]);
        assert!(forge.content().opened.is_empty(), "{kind}");
        // Killed after it was opened: the next one finds it.
        let killed = kill(&test, "forge.sent:1", &["pr", &id, "--push"]);
        assert!(!killed.status.success(), "{kind}");
        let there = test.run(&["pr", &id]);
        assert_eq!(there.code, 0, "{kind}\n{there}");
        assert!(there.stdout.contains("https://forge.example.org/r/40"), "{kind}\n{there}");
        let content = forge.content();
        assert_eq!(content.opened.len(), 1, "{kind}");
        let opened = content.opened[0].to_string();
        assert!(
            opened.contains("Made from the journal of") && opened.contains("\"main\""),
            "{kind}\n{opened}"
        );
    });
}
