#[path = "../src/unpack.rs"]
mod unpack;

use unpack::target;

#[test]
fn members_below_the_root() {
    assert_eq!(target("/srv/data", "a.txt").as_deref(), Some("/srv/data/a.txt"));
    assert_eq!(target("/srv/data", "a/b c.txt").as_deref(), Some("/srv/data/a/b c.txt"));
    assert_eq!(target("/", "a").as_deref(), Some("/a"));
}

#[test]
fn refused_members() {
    assert_eq!(target("/srv/data", ""), None);
    assert_eq!(target("/srv/data", "a\0b"), None);
}
