#[path = "../src/duration.rs"]
mod duration;

use duration::parse_seconds;

#[test]
fn several_units() {
    for (text, seconds) in [
        ("1h30m", 5400),
        ("2d12h", 216_000),
        ("1d1h1m1s", 90_061),
        ("1d1s", 86_401),
        ("0d90m", 5400),
        ("90m", 5400),
        ("00000000000000000000000001h007s", 3607),
        ("0s", 0),
    ] {
        assert_eq!(parse_seconds(text), Ok(seconds), "{text}");
    }
}

#[test]
fn the_largest_durations() {
    assert_eq!(parse_seconds("18446744073709551615s"), Ok(u64::MAX));
    assert_eq!(parse_seconds("213503982334601d7h15s"), Ok(u64::MAX));
}

#[test]
fn too_long() {
    for text in [
        "18446744073709551616s",
        "213503982334602d",
        "213503982334601d7h16s",
        "307445734561825861m",
        "1m18446744073709551615s",
        "99999999999999999999999999999d",
    ] {
        assert!(parse_seconds(text).is_err(), "{text}");
    }
}

#[test]
fn other_texts() {
    for text in [
        "5µ", "µ", "1h30", "30m1h", "1h1h", "1h0h", "1s1m", " 1h", "1h ", "1 h", "1h 30m", "+5s", "1h+5s", "-5s", "1.5h",
        "h1", "1hm", "1H", "٣s", "1h٣s", "dhms", "s", "", "1hé",
    ] {
        let result = parse_seconds(text);
        assert!(result.as_ref().is_err_and(|error| error.contains(text)), "{text:?} gives {result:?}");
    }
}
