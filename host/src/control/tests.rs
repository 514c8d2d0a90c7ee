use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::client::{self, Error};
use super::{ControlRefusal, Request, Requester, Server, acting_user, private_folder, serve, server, socket};
use crate::platform::files::{self as os, symlink};
use crate::platform::socket::{SocketPeer, UnixStream};

/// A server whose driver says yes to everything.
fn served(dir: &Path) -> (Server, PathBuf, Receiver<Request>) {
    let path = dir.join("control").join("x.sock");
    let (post, inbox) = channel();
    let server = serve(&path, move |steering| post.send(steering).is_ok()).expect("the socket opens");
    let (seen, requests) = channel();
    std::thread::spawn(move || {
        for steering in inbox {
            let _ = seen.send(steering.request.clone());
            steering.reply(Ok(json!({})));
        }
    });
    (server, path, requests)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn said(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a reply");
    serde_json::from_str(&line).expect("a JSON object")
}

#[test]
fn every_request_arrives_as_it_was_sent() {
    let dir = folder();
    let (_server, path, requests) = served(dir.path());
    let answer =
        Request::Answer { text: "yes, \"do\"\nit".to_owned(), question: Some(7), by: Requester::Page };
    let (by, page) = (Requester::Socket, Requester::Page);
    let rest =
        [Request::Stop, Request::Pause { by }, Request::Pause { by: page }, Request::Resume { by: page }];
    for request in [answer, Request::Resume { by }, Request::Status].into_iter().chain(rest) {
        client::send(&path, &request).expect("an ok");
        assert_eq!(requests.recv().expect("the request"), request);
    }
}

#[test]
fn a_bad_line_is_refused_with_its_reason_and_the_next_one_is_read() {
    let dir = folder();
    let (_server, path, requests) = served(dir.path());
    let rows: [(&[u8], &str); 10] = [
        (b"{", "malformed"),
        (b"", "malformed"),
        (b"\xff\xfe\x00", "malformed"),
        (b"[1,2]", "malformed"),
        (b"{\"request\":7}", "malformed"),
        (b"{\"request\":\"answer\"}", "malformed"),
        (b"{\"request\":\"answer\",\"text\":\"y\",\"question\":\"x\"}", "malformed"),
        (b"{\"request\":\"answer\",\"text\":\"  \"}", "empty_answer"),
        (b"{\"request\":\"merge\"}", "unknown_request"),
        (b"{\"request\":\"Stop\"}", "unknown_request"),
    ];
    let mut stream = UnixStream::connect(&path).expect("connects");
    for (line, reason) in rows {
        stream.write_all(line).and_then(|()| stream.write_all(b"\n")).expect("sent");
        let reply = said(&stream);
        assert_eq!((&reply["ok"], &reply["reason"]), (&json!(false), &json!(reason)), "{line:?}: {reply}");
        assert!(reply["message"].as_str().is_some_and(|message| !message.is_empty()), "{reply}");
    }
    stream.write_all(b"{\"request\":\"pause\"}\n").expect("sent");
    assert_eq!(said(&stream)["ok"], json!(true));
    assert_eq!(requests.recv().expect("the request"), Request::Pause { by: Requester::Socket });
}

#[test]
fn a_line_without_end_is_cut_off() {
    let dir = folder();
    let (_server, path, requests) = served(dir.path());
    let mut stream = UnixStream::connect(&path).expect("connects");
    // The other side may hang up before it has taken everything.
    let _ = stream.write_all(&vec![b'x'; super::LONGEST_LINE]);
    assert_eq!(said(&stream)["reason"], json!("too_long"));
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_flood_of_connections_is_refused_and_ends() {
    let dir = folder();
    let (_server, path, _requests) = served(dir.path());
    let idle: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&path).expect("connects")).collect();
    let refused = (0..20).filter(|_| {
        matches!(client::send(&path, &Request::Status), Err(Error::Refused { reason, .. }) if reason == "too_many_connections")
    });
    assert_eq!(refused.count(), 20);
    drop(idle);
    // The slots are free as soon as the other side has seen the ends.
    while let Err(error) = client::send(&path, &Request::Status) {
        assert!(matches!(error, Error::Refused { .. }), "{error}");
    }
}

#[test]
fn m_s15_the_socket_is_private_replaces_a_stale_one_and_goes_away() {
    let dir = folder();
    let (server, path, _requests) = served(dir.path());
    let mode = |path: &Path| os::mode(&std::fs::metadata(path).expect("it is there")) & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
    std::mem::forget(server);
    let (again, path, _requests) = served(dir.path());
    client::send(&path, &Request::Status).expect("the new one listens");
    drop(again);
    assert!(!path.exists());
    assert!(matches!(client::send(&path, &Request::Status), Err(Error::Unreachable(_))));
}

#[test]
fn m_s15_a_folder_that_others_may_enter_is_refused() {
    let dir = folder();
    let open = dir.path().join("open");
    std::fs::create_dir(&open).expect("made");
    os::set_mode(&open, 0o755).expect("opened");
    assert!(private_folder(&open).is_err());
    let link = dir.path().join("link");
    symlink(dir.path(), &link).expect("linked");
    assert!(private_folder(&link).is_err());
}

#[test]
fn a_driver_that_is_gone_is_reported_as_ended() {
    let dir = folder();
    let path = dir.path().join("control").join("x.sock");
    let (post, inbox) = channel();
    let _server = serve(&path, move |steering| post.send(steering).is_ok()).expect("the socket opens");
    drop(inbox);
    let refused = client::send(&path, &Request::Stop);
    assert!(
        matches!(refused, Err(Error::Refused { reason, .. }) if reason == ControlRefusal::Ended.reason())
    );
}

#[test]
fn a_path_fits_into_a_socket_address() {
    let (events, run) = (Path::new("/repo/.archeflow/events"), "2026-01-01-a");
    let short = socket(Path::new("/home/u/.local/state/archeflow"), None, events, run);
    assert!(short.starts_with("/home/u/.local/state/archeflow/control"));
    let long = PathBuf::from(format!("/{}", "x".repeat(120)));
    let last = socket(&long, None, events, run);
    assert!(last.starts_with(format!("/tmp/archeflow-{}", acting_user())), "{}", last.display());
    let runtime = socket(&long, Some(Path::new("/run/user/1000")), events, run);
    assert!(runtime.starts_with("/run/user/1000/archeflow"));
    let other = socket(Path::new("/h"), None, events, "other");
    assert_ne!(short.file_name(), other.file_name());
}

#[test]
fn m_s8_m_s15_only_this_user_may_steer_and_no_process_of_the_run() {
    let peer = |user, process| SocketPeer { user, process };
    let inside = |pid| pid == 42;
    for (who, refused) in [
        (peer(1000, Some(7)), None),
        (peer(1000, None), None),
        (peer(1000, Some(42)), Some(ControlRefusal::FromInside)),
        (peer(1001, Some(7)), Some(ControlRefusal::OtherUser)),
        (peer(0, Some(7)), Some(ControlRefusal::OtherUser)),
    ] {
        assert_eq!(server::refusal(&who, 1000, inside), refused);
    }
    let us = i32::try_from(std::process::id()).expect("a number");
    assert!(!crate::proc::is_descendant(us) && !crate::proc::is_descendant(1));
}

#[test]
fn a_reply_that_is_on_its_way_is_written_before_the_server_is_gone() {
    let dir = folder();
    let path = dir.path().join("control").join("x.sock");
    for _ in 0..20 {
        let (post, inbox) = channel();
        let server = serve(&path, move |steering| post.send(steering).is_ok()).expect("the socket opens");
        let mut stream = UnixStream::connect(&path).expect("connects");
        stream.write_all(b"{\"request\":\"stop\"}\n").expect("sent");
        let Ok(steering) = inbox.recv() else { panic!("a request comes") };
        steering.reply(Ok(json!({})));
        drop(server);
        // The program could end here, and its threads with it.
        stream.set_nonblocking(true).expect("set");
        assert_eq!(said(&stream)["ok"], json!(true));
    }
}
