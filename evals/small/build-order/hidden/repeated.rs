#[path = "../src/order.rs"]
mod order;

use order::order;

type Targets<'a> = &'a [(&'a str, &'a [&'a str])];

fn check(targets: Targets, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|name| name.to_string()).collect();
    assert_eq!(order(targets), Ok(expected), "{targets:?}");
}

fn refuse(targets: Targets, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|name| name.to_string()).collect();
    assert_eq!(order(targets), Err(expected), "{targets:?}");
}

#[test]
fn repeated_side_by_side() {
    check(&[("app", &["lib", "lib"]), ("lib", &[])], &["lib", "app"]);
}

#[test]
fn repeated_with_others_between() {
    check(&[("app", &["lib", "util", "lib"]), ("lib", &[]), ("util", &["lib"])], &["lib", "util", "app"]);
    check(&[("app", &["lib", "x.c", "lib", "x.c"]), ("lib", &[])], &["lib", "app"]);
}

#[test]
fn repeated_in_several_entries() {
    check(&[("app", &["lib"]), ("lib", &[]), ("app", &["lib", "util"]), ("util", &[])], &["lib", "util", "app"]);
    check(&[("app", &["z"]), ("app", &[]), ("z", &[]), ("z", &[])], &["z", "app"]);
}

#[test]
fn smallest_name_first() {
    check(&[("d", &["b", "a", "b"]), ("c", &["a", "a"]), ("b", &[]), ("a", &[])], &["a", "b", "c", "d"]);
    check(&[("a", &["z", "z"]), ("y", &[]), ("z", &[])], &["y", "z", "a"]);
}

#[test]
fn cycles_are_still_found() {
    refuse(&[("a", &["b", "b"]), ("b", &["a", "a"]), ("c", &[])], &["a", "b"]);
    refuse(&[("a", &["a", "a"])], &["a"]);
    refuse(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["x"])], &["a", "b", "c"]);
    refuse(&[("a", &[]), ("b", &["a"]), ("a", &["b"])], &["a", "b"]);
}
