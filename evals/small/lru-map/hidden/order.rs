#[path = "../src/lru.rs"]
mod lru;

use lru::Lru;

fn full() -> Lru<i32> {
    let mut map = Lru::new(3);
    for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(map.put(key, value), None);
    }
    map
}

#[test]
fn get_is_a_use() {
    let mut map = full();
    assert_eq!(map.get("a"), Some(&1));
    assert_eq!(map.keys(), ["b", "c", "a"]);
    assert_eq!(map.get("c"), Some(&3));
    assert_eq!(map.put("d", 4), Some(("b".to_string(), 2)));
    assert_eq!(map.keys(), ["a", "c", "d"]);
}

#[test]
fn get_of_a_missing_key_changes_nothing() {
    let mut map = full();
    assert_eq!(map.get("x"), None);
    assert_eq!(map.keys(), ["a", "b", "c"]);
}

#[test]
fn a_new_value_drops_no_key() {
    let mut map = full();
    assert_eq!(map.put("c", 5), None);
    assert_eq!(map.keys(), ["a", "b", "c"]);
    assert_eq!(map.put("a", 6), None);
    assert_eq!(map.keys(), ["b", "c", "a"]);
    assert_eq!((map.get("a").copied(), map.get("b").copied(), map.get("c").copied()), (Some(6), Some(2), Some(5)));
}

#[test]
fn a_map_of_one() {
    let mut map = Lru::new(1);
    assert_eq!(map.put("a", 1), None);
    assert_eq!(map.put("a", 2), None);
    assert_eq!(map.put("b", 3), Some(("a".to_string(), 2)));
    assert_eq!(map.keys(), ["b"]);
}

#[test]
fn peek_is_no_use() {
    let map = full();
    assert_eq!(map.peek("a"), Some(&1));
    assert_eq!(map.keys(), ["a", "b", "c"]);
}
