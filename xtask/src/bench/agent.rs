//! The agent that does nothing: it prints the required answer and records when it began and ended.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::wire::signed;

/// `xtask __noop-agent <folder>`.
pub(crate) fn play(folder: &str) -> ExitCode {
    let code = appear(Path::new(folder), |role, cycle| {
        let _ = std::io::stdout().write_all(signed(act(role, cycle), &brief()).as_bytes());
        0
    });
    ExitCode::from(code)
}

/// What it was given to read.
pub(super) fn brief() -> String {
    let mut brief = String::new();
    let _ = std::io::stdin().read_to_string(&mut brief);
    brief
}

/// Writes down when it began and ended, with what it does in between.
pub(super) fn appear(folder: &Path, during: impl FnOnce(&str, &str) -> u8) -> u8 {
    let began = now();
    let role = std::env::var("ARCHEFLOW_ROLE").unwrap_or_else(|_| "explorer".to_owned());
    let cycle = std::env::var("ARCHEFLOW_CYCLE").unwrap_or_else(|_| "1".to_owned());
    let code = during(&role, &cycle);
    let file = folder.join(std::process::id().to_string());
    let _ = std::fs::write(file, format!("{began} {} {role}\n", now()));
    code
}

/// Does the required work of its role and prints the answer.
pub(super) fn act(role: &str, cycle: &str) -> &'static str {
    if role == "maker" {
        let _ = std::fs::write(format!("work-{cycle}.txt"), "work\n");
        let _ = std::fs::write("a.txt", format!("hello\nwork {cycle}\n"));
        let _ = std::fs::create_dir_all("tests");
        let _ = std::fs::write(format!("tests/test-{cycle}.sh"), "true\n");
    }
    answer(role, cycle)
}

/// Nanoseconds of the machine's own clock.
fn now() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u128::from(now.tv_sec.unsigned_abs()) * 1_000_000_000 + u128::from(now.tv_nsec.unsigned_abs())
}

pub(super) fn answer(role: &str, cycle: &str) -> &'static str {
    match (role, cycle) {
        ("explorer", _) => "## Affected files\n\n- `a.txt`\n\n## Recommendation\n\nDo it.\n\nSTATUS: DONE\n",
        ("creator", _) => PROPOSAL,
        ("maker", _) => "## Summary\n\nDone.\n\n## Tests\n\nAll pass.\n\nSTATUS: DONE\n",
        ("guardian", "1") => REJECTION,
        _ => "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n",
    }
}

const PROPOSAL: &str = "\
## Architecture

One file. Rationale: one place.

## Files

- `a.txt`: greets (2 minutes)
- `work-1.txt`: the work (2 minutes)
- `work-2.txt`: more of it (2 minutes)

## Alternatives

- None of it: rejected.
- All of it: rejected.

## Test strategy

- `tests/test-1.sh`.

## Confidence

| Axis | Score |
|---|---|
| Task understanding | 0.95 |
| Solution completeness | 0.95 |
| Risk coverage | 0.9 |

## Risks

- None known. Mitigation: none.

STATUS: DONE
";

const REJECTION: &str = "\
VERDICT: REJECTED
FINDINGS: 1

| Location | Severity | Category | Description | Fix | Evidence |
|---|---|---|---|---|---|
| a.txt:1 | WARNING | reliability | The greeting stops at the first name | Greet everybody | `a.txt:1` `hello` |

STATUS: DONE
";

/// One appearance of the agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Appearance {
    pub(super) began: u128,
    pub(super) ended: u128,
    pub(super) role: String,
}

/// Everything the agent wrote down in a folder, in order.
pub(super) fn appearances(folder: &Path) -> std::io::Result<Vec<Appearance>> {
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let text = std::fs::read_to_string(entry?.path())?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let [began, ended, role] = words[..] else { continue };
        if let (Ok(began), Ok(ended)) = (began.parse(), ended.parse()) {
            seen.push(Appearance { began, ended, role: role.to_owned() });
        }
    }
    seen.sort();
    Ok(seen)
}
