//! Tests of the suite itself.

use super::*;

#[test]
fn a_full_disk_is_named_before_anything_is_built() {
    let root = Path::new("/repository");
    let gb = |number: u64| number * 1_000_000_000;
    let said = |free, built| tools::enough_space(root, free, built);
    assert_eq!(said(None, 0), Ok("free space unknown".to_owned()));
    assert_eq!(said(Some(gb(50)), gb(4)), Ok("50.0 GB free, at most 6.0 GB more are needed".to_owned()));
    assert_eq!(said(Some(gb(3)), 0), Ok("WARNING: 3.0 GB free, at most 10.0 GB more are needed".to_owned()));
    assert_eq!(said(Some(gb(3)), gb(40)), Ok("3.0 GB free, at most 2.0 GB more are needed".to_owned()));
    let why = said(Some(gb(1)), gb(7)).err().unwrap_or_default();
    assert!(
        why.contains("/repository has 1.0 GB free") && why.contains("`cargo clean` frees 7.0 GB"),
        "{why}"
    );
}

#[test]
fn flags_leave_steps_out_and_unknown_words_are_errors() {
    let plan = |args: &[&str]| {
        let asked = Asked::read(args)?;
        let run = STEPS.iter().filter(|step| asked.wants(step) && asked.without(step).is_none());
        Ok::<_, String>(run.map(|step| step.name).collect::<Vec<_>>())
    };
    let all = STEPS.map(|step| step.name).to_vec();
    let without =
        |names: &[&str]| all.iter().copied().filter(|name| !names.contains(name)).collect::<Vec<_>>();
    let usual = |names: &[&str]| without(&[names, &FULL].concat());
    let long = ["crash", "sprint", "fleet", "browser", "schemas", "clients", "smoke", "simulation"];
    assert_eq!(plan(&[]), Ok(usual(&[])));
    assert_eq!(plan(&["--full"]), Ok(all.clone()));
    assert_eq!(plan(&["--without-clients"]), Ok(usual(&["schemas", "clients", "smoke"])));
    let clients = ["schemas", "telemetry", "clients", "smoke", "matrix"];
    assert_eq!(plan(&["--full", "--without-clients"]), Ok(without(&clients)));
    assert_eq!(plan(&["--quick"]), Ok(usual(&long)));
    assert_eq!(plan(&["clients", "matrix"]), Ok(vec!["clients", "matrix"]));
    for (unknown, words) in [("--fast", "--quick, --without-clients"), ("tess", "tools, tidy, fmt")] {
        let why = plan(&[unknown]).err().unwrap_or_default();
        assert!(why.contains(unknown) && why.contains(words), "{unknown}: {why}");
    }
}

#[test]
fn a_step_that_doubles_is_named() {
    let step = Step { minutes: 5, ..STEPS[0] };
    let said = |seconds| budget::over(&step, Duration::from_secs(seconds));
    assert_eq!((said(0), said(599)), (None, None));
    let why = said(600).unwrap_or_default();
    assert!(why.contains("for 10 minutes, twice the 5"), "{why}");
}

#[test]
fn results_are_counted() {
    let mut count = Count::default();
    for line in [
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s",
        "test a ... ok",
        "test b::c ... FAILED",
        "test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        "a line about 5 passed; 5 failed",
    ] {
        count.add(line);
    }
    assert_eq!(count, Count { passed: 19, failed: 2, names: vec!["b::c".to_owned()] });
}
