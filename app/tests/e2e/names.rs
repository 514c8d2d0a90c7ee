//! J-01: a name is its bytes, whatever they are: in the plan, the change, findings, prompts, screens and reports.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::harness::{Test, each};

/// A file and how agents and the program write it.
struct Named {
    /// As `printf` of a shell makes it.
    made: &'static str,
    bytes: &'static [u8],
    /// In the Creator's list.
    planned: &'static str,
    /// In the Guardian's table.
    cited: &'static str,
    /// In the log and everywhere else.
    shown: &'static str,
}

fn named(
    made: &'static str,
    bytes: &'static [u8],
    planned: &'static str,
    cited: &'static str,
    shown: &'static str,
) -> Named {
    Named { made, bytes, planned, cited, shown }
}

fn rows() -> Vec<Named> {
    vec![
        named(
            "src/größe.py",
            "src/größe.py".as_bytes(),
            "- `src/größe.py`: the size",
            "`src/größe.py:2`",
            "src/größe.py",
        ),
        named(
            "src/größe.py",
            "src/größe.py".as_bytes(),
            r#"- `"src/gr\303\266\303\237e.py"`: as git writes it"#,
            r#""src/gr\303\266\303\237e.py":2"#,
            "src/größe.py",
        ),
        // The tree has it decomposed, agents compose it.
        named(
            "src/gro\u{308}sse.py",
            "src/gro\u{308}sse.py".as_bytes(),
            "- src/grösse.py: the size",
            "src/grösse.py:2",
            "src/gro\u{308}sse.py",
        ),
        named("src/漢字.py", "src/漢字.py".as_bytes(), "- \"src/漢字.py\"", "`src/漢字.py:2`", "src/漢字.py"),
        named(
            "src/my first file.py",
            b"src/my first file.py",
            "- src/my first file.py: one more line",
            "src/my first file.py:2",
            "src/my first file.py",
        ),
        named(
            "src/say \"hi\".py",
            b"src/say \"hi\".py",
            r#"- `src/say "hi".py`"#,
            r#"`"src/say \"hi\".py":2`"#,
            r#""src/say \"hi\".py""#,
        ),
        named(
            "src/a\\tb\\nc.py",
            b"src/a\tb\nc.py",
            r#"- `"src/a\tb\nc.py"`"#,
            r#"`"src/a\tb\nc.py":2`"#,
            r#""src/a\tb\nc.py""#,
        ),
        named(
            "src/back\\\\slash.py",
            b"src/back\\slash.py",
            r#"- `"src/back\\slash.py"`"#,
            r#"`"src/back\\slash.py":2`"#,
            r#""src/back\\slash.py""#,
        ),
        // Latin-1: no text can hold it, so it is escaped.
        named(
            "src/caf\\351.py",
            b"src/caf\xe9.py",
            r#"- `"src/caf\351.py"`"#,
            r#"`"src/caf\351.py":2`"#,
            r#""src/caf\351.py""#,
        ),
    ]
}

#[test]
fn j_01_odd_names_are_planned_changed_found_and_landed() {
    each(rows(), |row| {
        let Named { made, bytes, planned, cited, shown } = row;
        let play = format!(
            "== creator ==\nsay <<END\n## Architecture\n\nA file. Rationale: asked for.\n\n## Files\n\n{planned}\n\n\
             ## Alternatives\n\n- none: rejected\n- two: rejected\n\n## Test strategy\n\n- it is there\n\n\
             ## Confidence\n\n| Axis | Score |\n|---|---|\n| Task understanding | 0.9 |\n\
             | Solution completeness | 0.9 |\n| Risk coverage | 0.9 |\n\n## Risks\n\n- none\n\nSTATUS: DONE\nEND\n\n\
             == maker ==\n\
             sh f=$(printf '{made}.'); f=${{f%.}}; printf 'first = %s\\nsecond = 2\\n' \"$ARCHEFLOW_CYCLE\" > \"$f\"; \
             echo case >> tests/check_test.sh\n\
             commit Write it\n\
             say <<END\n## Summary\n\nWritten.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n\
             == guardian cycle=1 ==\nsay <<END\nVERDICT: REJECTED\nFINDINGS: 1\n\n\
             | Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n\
             | {cited} | CRITICAL | correctness | The second value is never read | Use it | `second = 2` |\n\n\
             STATUS: DONE\nEND\n\n"
        );
        let test = Test::new().play(&play);
        // The user's own settings say nothing about how names are compared.
        test.git(["config", "core.quotePath", "true"]);
        let ended = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
        assert_eq!(ended.events("shadow.detected").len(), 0, "{shown}\n{ended}");
        assert_eq!(ended.times("maker"), 2, "{shown}\n{ended}");

        // The change and the finding have the same name in the log.
        let completed = ended.events("agent.complete");
        let paths: Vec<&str> =
            completed.iter().filter_map(|done| done["change"]["files"][0]["path"].as_str()).collect();
        assert_eq!(paths, [shown, shown], "{ended}");
        let open = &ended.events("cycle.boundary")[0]["open"][0];
        assert_eq!((open["file"].as_str(), open["line"].as_u64()), (Some(shown), Some(2)), "{ended}");
        assert_eq!(open["severity"], "CRITICAL", "the citation was found\n{ended}");

        // Reviewers are shown it, and it lands as it was made.
        let brief = ended.briefs("guardian").concat();
        let header = match shown.strip_prefix('"') {
            Some(quoted) => format!("+++ \"b/{quoted}"),
            None => format!("+++ b/{shown}"),
        };
        assert!(brief.contains(&header), "{header} is not in\n{brief}");
        let landed = test.try_git(["ls-tree", "-r", "-z", "--name-only", "main"]).stdout;
        assert!(landed.split(|byte| *byte == 0).any(|path| path == bytes), "{shown}\n{ended}");
        let path = Path::new(std::ffi::OsStr::from_bytes(bytes));
        assert_eq!(fs::read_to_string(test.repo.join(path)).unwrap(), "first = 2\nsecond = 2\n", "{shown}");

        // Screen and report write it the same way.
        let screen = test.run(&["show", &ended.id]);
        assert!(screen.stderr.contains(&format!("CRITICAL {shown}:2 ")), "{shown}\n{screen}");
        let page = test.base().join("report.html");
        test.run(&["report", &ended.id, "--html", "--output", page.to_str().unwrap()]);
        let html = fs::read_to_string(&page).unwrap().replace("&quot;", "\"");
        assert!(html.contains(shown), "{shown} is not in the report");
    });
}
