#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;

use archeflow_core::eval::SeededRandom;
use tempfile::TempDir;

use super::*;

const PLAN: &str = r#"{"v":1,"suite":"small","suite_digest":"d","tasks":[{"name":"a","seconds":60},{"name":"b","seconds":60}],
"arms":[{"name":"single","digest":"1"},{"name":"full","digest":"2"}],"repeats":2,"agent":"x","seed":1,"version":"1","started":5,
"of a later version":true}"#;

fn folder(plan: &[u8], trials: Option<&[u8]>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(PLAN_FILE), plan).unwrap();
    if let Some(trials) = trials {
        fs::write(folder.path().join(TRIALS_FILE), trials).unwrap();
    }
    folder
}

fn line(task: &str, arm: &str, repeat: u32) -> String {
    format!(r#"{{"v":1,"task":"{task}","arm":"{arm}","repeat":{repeat},"end":"landed","hidden_pass":true}}"#)
}

fn read(folder: &TempDir) -> Result<RecordedTrials, Vec<RecordFault>> {
    read_trials(folder.path(), &read_plan(folder.path()).unwrap())
}

#[test]
fn ev_114_all_faults_of_a_record_are_reported_at_once_with_their_lines() {
    let text = [
        line("a", "single", 1),
        "not json".to_owned(),
        line("c", "single", 1),
        line("a", "none", 1),
        line("a", "full", 3),
        r#"{"v":9,"task":"a"}"#.to_owned(),
        String::new(),
        line("b", "full", 2),
    ]
    .join("\n")
        + "\n";
    let mut bytes = text.into_bytes();
    bytes.extend(b"\xff\xfe\n");
    let faults = read(&folder(PLAN.as_bytes(), Some(&bytes))).unwrap_err();
    let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 9], "{faults:?}");
    for fault in &faults {
        assert!(fault.place.ends_with(TRIALS_FILE) && !fault.remedy.is_empty(), "{fault:?}");
    }
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(
        said[0].contains("trials.jsonl:2: no JSON") && said[0].contains("\n  Remove the line"),
        "{said:?}"
    );
    assert!(said[1].contains("the plan has no such trial"), "{said:?}");
    assert!(said[4].contains("format 9") && said[4].contains("pdate archeflow"), "{said:?}");

    let many = "x\n".repeat(5_000);
    let faults = read(&folder(PLAN.as_bytes(), Some(many.as_bytes()))).unwrap_err();
    assert_eq!(faults.len(), MOST_FAULTS + 1);
    assert!(faults[MOST_FAULTS].text.contains("4900 more"), "{:?}", faults[MOST_FAULTS]);
}

#[test]
fn ev_115_a_cut_last_line_and_second_records_are_skipped_with_a_note() {
    let (first, second) = (line("a", "single", 1), line("b", "full", 2));
    let whole = format!("{first}\n{second}\n");
    assert_eq!(read(&folder(PLAN.as_bytes(), Some(whole.as_bytes()))).unwrap().notes, []);
    // Cut anywhere in the second line, only the first one counts, until the line is whole.
    for end in first.len() + 1..whole.len() {
        let cut = &whole.as_bytes()[..end];
        let found = read(&folder(PLAN.as_bytes(), Some(cut))).unwrap();
        let is_whole = end >= first.len() + 1 + second.len();
        assert_eq!(found.trials.len(), if is_whole { 2 } else { 1 }, "{end}");
        let notes = usize::from(!is_whole && end > first.len() + 1);
        assert_eq!(found.notes.len(), notes, "{end}: {:?}", found.notes);
    }
    let again = first.replace("true", "false");
    let twice = format!("{first}\n{again}\n");
    let found = read(&folder(PLAN.as_bytes(), Some(twice.as_bytes()))).unwrap();
    assert_eq!(found.trials.len(), 1);
    assert!(found.trials.iter().all(|trial| trial.hidden_pass == Some(true)));
    assert_eq!((found.notes.len(), found.notes[0].line), (1, 2));
    // The first trial has not ended.
    let none = read(&folder(PLAN.as_bytes(), None)).unwrap();
    assert!(none.trials.is_empty() && none.notes.len() == 1);
}

#[test]
fn ev_116_a_plan_that_is_none_is_refused_and_no_bytes_panic() {
    let plan = |text: &str| read_plan(folder(text.as_bytes(), None).path());
    assert_eq!(plan(PLAN).unwrap().tasks.len(), 2);
    let missing = read_plan(tempfile::tempdir().unwrap().path()).unwrap_err();
    assert!(missing[0].to_string().contains("archeflow eval run"), "{missing:?}");
    let newer = plan(&PLAN.replace("\"v\":1", "\"v\":2")).unwrap_err();
    assert!(newer[0].to_string().contains("format 2") && newer[0].remedy.contains("Update"), "{newer:?}");
    let several = PLAN.replace("\"name\":\"b\"", "\"name\":\"a\"").replace("\"full\"", "\"single\"");
    let several = plan(&several.replace("\"repeats\":2", "\"repeats\":0")).unwrap_err();
    assert_eq!(several.len(), 3, "{several:?}");
    for text in ["", "[]", "{}", "nul", "{\"v\":1}", "\u{1b}[2J"] {
        let faults = plan(text).unwrap_err();
        assert!(faults.iter().all(|fault| !fault.remedy.is_empty()), "{faults:?}");
        assert!(faults.iter().all(|fault| !fault.to_string().contains('\u{1b}')), "{faults:?}");
    }
    let mut random = SeededRandom::new(4);
    let good = [line("a", "single", 1), line("b", "full", 2)].join("\n");
    for _ in 0..300 {
        let mut one = PLAN.as_bytes().to_vec();
        let mut other = good.as_bytes().to_vec();
        for bytes in [&mut one, &mut other] {
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(random.below(bytes.len()) + 1);
        }
        let broken = folder(&one, Some(&other));
        let _ = read_plan(broken.path());
        let _ = read_trials(broken.path(), &plan(PLAN).unwrap());
    }
}
