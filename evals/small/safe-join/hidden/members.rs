#[path = "../src/unpack.rs"]
mod unpack;

use unpack::target;

fn check(root: &str, member: &str, expected: Option<&str>) {
    assert_eq!(target(root, member).as_deref(), expected, "{root} {member:?}");
}

#[test]
fn resolved() {
    check("/srv/data", "a//./b/../c", Some("/srv/data/a/c"));
    check("/srv/data", "./a/", Some("/srv/data/a"));
    check("/srv/data", "a/b/../../c", Some("/srv/data/c"));
    check("/", "a/../b", Some("/b"));
}

#[test]
fn outside() {
    for member in ["../../etc/passwd", "..", "../x", "a/../../x", "a/../..", "./../x", "a/b/../../../x"] {
        check("/srv/data", member, None);
    }
    check("/", "..", None);
    check("/", "../a", None);
}

#[test]
fn a_neighbour_with_a_similar_name() {
    check("/srv/data", "../data-old/x", None);
    check("/srv/data", "../database", None);
}

#[test]
fn away_and_back() {
    check("/srv/data", "../data/x", None);
    check("/srv/data", "a/../../data/x", None);
    check("/", "../x/y", None);
}

#[test]
fn absolute() {
    check("/srv/data", "/etc/passwd", None);
    check("/srv/data", "/srv/data/x", None);
    check("/srv/data", "//x", None);
    check("/", "/x", None);
}

#[test]
fn nothing_below_the_root() {
    for member in ["", ".", "./", "a/..", "a/b/../../", "./."] {
        check("/srv/data", member, None);
        check("/", member, None);
    }
}

#[test]
fn ordinary_names() {
    for name in ["...", "..a", "a..", ".hidden", "a\\..\\b", " ", "\\", "é"] {
        check("/srv/data", name, Some(&format!("/srv/data/{name}")));
    }
    check("/srv/data", "a/\0", None);
}
