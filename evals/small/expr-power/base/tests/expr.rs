#[path = "../src/expr.rs"]
mod expr;

use expr::evaluate;

#[test]
fn operators() {
    assert_eq!(evaluate("1 + 2 * 3"), Ok(7.0));
    assert_eq!(evaluate("8 - 2 - 1"), Ok(5.0));
    assert_eq!(evaluate("-(1 + 2) / 2"), Ok(-1.5));
    assert_eq!(evaluate("2 * -3"), Ok(-6.0));
    assert_eq!(evaluate("--2"), Ok(2.0));
}

#[test]
fn errors() {
    assert_eq!(evaluate("(1"), Err("missing )".to_string()));
    assert_eq!(evaluate("1 +"), Err("a number is missing at 3".to_string()));
    assert_eq!(evaluate("1 $"), Err("unexpected $".to_string()));
}
