//! What docs/fleet.md tells a newcomer to type, typed as it stands.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use crate::program::server_program;
use crate::user::{PROGRAM, TestUser};

const PAGE: &str = include_str!("../../../docs/fleet.md");

/// The fenced blocks between two headings; the agents of the page write headings, too.
fn blocks(from: &str, to: &str) -> Vec<&'static str> {
    let text = PAGE.split(&format!("## {from}\n")).nth(1).unwrap();
    let text = text.split(&format!("\n## {to}\n")).next().unwrap();
    text.split("```sh\n").skip(1).map(|block| block.split("\n```").next().unwrap()).collect()
}

#[test]
fn fl_89_the_walk_through_of_the_page_goes_as_it_is_shown() {
    let user = TestUser::new();
    let folder = user.base().join("new");
    fs::create_dir(&folder).unwrap();
    let found = blocks("In five minutes", "What each command does");
    let [setup, looks] = found.as_slice() else { panic!("the page has {} blocks", found.len()) };
    // The port of the page may be taken here, and the jobs end with this shell.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "set -e\ntrap 'kill $(jobs -p); wait' EXIT\n{setup}\necho '=== looks'\n{looks}\n",
        setup = setup.replace("127.0.0.1:4222", &format!("127.0.0.1:{port}")),
    );
    let path = format!(
        "{}:{}",
        Path::new(PROGRAM).parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut shell = user.command("bash");
    shell.args(["-c", &script]).current_dir(&folder).env("PATH", path);
    shell.env("ARCHEFLOW_NATS_SERVER", server_program());
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let looked = out.split("=== looks\n").nth(1).unwrap_or_default();
    for project in ["shop", "till"] {
        let log = user.git_in(&folder.join(format!("remotes/{project}.git")), ["log", "--format=%s", "main"]);
        let landed = if project == "shop" { 2 } else { 1 };
        assert_eq!(log.lines().count(), landed * 2 + 1, "{project}: {log}\n{out}\n{err}");
    }
    for words in ["w1", "w2", "w3", "shop-show-prices-with-tax", "till-print-the-tax-on-receipts"] {
        assert!(looked.contains(words), "{words} is not in:\n{looked}");
    }
}
