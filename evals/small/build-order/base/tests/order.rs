#[path = "../src/order.rs"]
mod order;

use order::order;

#[test]
fn dependencies_come_first() {
    assert_eq!(order(&[("app", &["lib", "main.c"]), ("lib", &[])]).unwrap(), ["lib", "app"]);
    assert_eq!(order(&[("c", &[]), ("a", &[]), ("b", &["c"])]).unwrap(), ["a", "c", "b"]);
    assert!(order(&[]).unwrap().is_empty());
}

#[test]
fn cycles() {
    assert_eq!(order(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]).unwrap_err(), ["a", "b"]);
    assert_eq!(order(&[("a", &["a"])]).unwrap_err(), ["a"]);
}
