//! Executes `docs/rules/leaks.md`.

mod common {
    #[expect(dead_code, reason = "this page needs only some of the reader")]
    pub(crate) mod page;
}

use archeflow_core::strategies::agent_loop::rules::leaks::{Leak, LeakKind, leaks_in};

use common::page::Page;

#[test]
fn pj_44_what_an_added_line_gives_away() {
    let mut page = Page::open("leaks");
    page.check("Lines", |row| {
        let line = row.get("line").replace(['~', '`'], "");
        let leaks = leaks_in(row.get("path"), &line);
        let told = |of: fn(&Leak) -> &str| leaks.iter().map(of).collect::<Vec<_>>().join("; ");
        row.expect("found", told(|leak| leak.kind));
        row.expect("shown", told(|leak| leak.shown.as_str()));
        for leak in leaks.iter().filter(|leak| leak.class == LeakKind::Credential) {
            assert!(!leak.shown.contains(&line), "{line} is shown in full");
        }
    });
    page.close();
}

#[test]
fn pj_44_no_line_is_too_strange() {
    let strange = [
        "",
        "=",
        ":\"",
        "://",
        "://:@",
        "password=\"",
        "eyJ",
        "ü://ü:üüüüüüüü1@",
        "ghp_\u{1F600}",
        "secret:'",
    ];
    for line in strange {
        for cut in (0..=line.len()).filter(|cut| line.is_char_boundary(*cut)) {
            let _ = leaks_in("a.py", &line[..cut]);
        }
    }
}
