#[path = "../src/expr.rs"]
mod expr;

use expr::evaluate;

fn check(text: &str, expected: f64) {
    assert_eq!(evaluate(text), Ok(expected), "{text}");
}

#[test]
fn power() {
    check("2 ^ 10", 1024.0);
    check("2^0.5^2", 2f64.powf(0.25));
    check("(1 + 2)^2", 9.0);
    check("2^(1 + 2)", 8.0);
}

#[test]
fn grouped_from_the_right() {
    check("2^3^2", 512.0);
    check("(2^3)^2", 64.0);
    check("2^2^0^5", 2.0);
}

#[test]
fn sign_before_the_base() {
    check("-2^2", -4.0);
    check("--2^2", 4.0);
    check("(-2)^2", 4.0);
    check("1 - 2^2", -3.0);
    check("3 * -2^2", -12.0);
}

#[test]
fn sign_before_the_exponent() {
    check("2 ^ -1", 0.5);
    check("2^--1", 2.0);
    check("4^-1^2", 0.25);
    check("2^-2^0", 0.5);
    check("-2^-2", -0.25);
}

#[test]
fn with_the_other_operators() {
    check("2 * 3^2", 18.0);
    check("18 / 3^2", 2.0);
    check("2^2 * 3", 12.0);
    check("8 - 2 - 1", 5.0);
    check("8 / 2 / 2", 2.0);
}

#[test]
fn errors() {
    for text in ["2^", "^2", "2^^2", "2^*2", "2 ** 2", "(2^3", "2^)", "2^-"] {
        assert!(evaluate(text).is_err(), "{text}");
    }
}
