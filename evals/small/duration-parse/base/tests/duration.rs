#[path = "../src/duration.rs"]
mod duration;

use duration::parse_seconds;

#[test]
fn one_unit() {
    assert_eq!(parse_seconds("90s"), Ok(90));
    assert_eq!(parse_seconds("5m"), Ok(300));
    assert_eq!(parse_seconds("2h"), Ok(7200));
    assert_eq!(parse_seconds("1d"), Ok(86400));
}

#[test]
fn errors() {
    assert_eq!(parse_seconds(""), Err("not a duration: ".to_string()));
    assert_eq!(parse_seconds("5"), Err("not a duration: 5".to_string()));
    assert_eq!(parse_seconds("5w"), Err("not a duration: 5w".to_string()));
    assert_eq!(parse_seconds("h"), Err("not a duration: h".to_string()));
}
