#![allow(dead_code)]
#[path = "../src/lru.rs"]
mod lru;

fn main() {
    let mut map = lru::Lru::new(2);
    map.put("a", 1);
    map.put("b", 2);
    map.peek("a");
    let changed = map.keys() != ["a", "b"];
    std::process::exit(i32::from(changed));
}
