#[path = "../src/lru.rs"]
mod lru;

use lru::Lru;

#[test]
fn the_oldest_key_is_dropped() {
    let mut map = Lru::new(2);
    assert_eq!(map.put("a", 1), None);
    assert_eq!(map.put("b", 2), None);
    assert_eq!(map.put("c", 3), Some(("a".to_string(), 1)));
    assert_eq!(map.keys(), ["b", "c"]);
}

#[test]
fn values() {
    let mut map = Lru::new(3);
    map.put("a", 1);
    map.put("a", 2);
    assert_eq!(map.get("a"), Some(&2));
    assert_eq!(map.peek("a"), Some(&2));
    assert_eq!(map.get("b"), None);
    assert_eq!(map.keys(), ["a"]);
}
