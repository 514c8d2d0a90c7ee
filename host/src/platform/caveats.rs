//! What a system does less well than Linux, in sentences for `archeflow doctor` and `docs/platforms.md`.

/// The system this program was compiled for, as `std` names it.
pub const SYSTEM: &str = std::env::consts::OS;

/// What is weaker on a system, by its name, so that every answer can be tested on any of them.
pub fn of(system: &str) -> &'static [&'static str] {
    match system {
        "macos" => &MACOS,
        _ => &[],
    }
}

const MACOS: [&str; 5] = [
    "this build was compiled and linked for macOS, but not run on a Mac: the tests run on Linux",
    "there is no subreaper: a process that leaves its agent's session and whose environment the system hides outlives the agent",
    "a watcher process ends the agents when archeflow is killed; if both are killed, agents run on until the run is resumed",
    "there are no handles for processes: a process is compared by its start time just before it is signalled",
    "file systems usually ignore case: a change with names that differ only in case is not landed there",
];

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn linux_has_none_and_macos_says_it_was_not_run() {
        assert!(of("linux").is_empty());
        let [first, ..] = of("macos") else { panic!("macOS has caveats") };
        assert!(first.contains("not run on a Mac"), "{first}");
    }

    #[test]
    fn the_page_of_platforms_lists_every_caveat() {
        let page = include_str!("../../../docs/platforms.md");
        for caveat in of("macos") {
            assert!(
                page.to_lowercase().contains(&caveat.to_lowercase()),
                "docs/platforms.md lacks: {caveat}"
            );
        }
    }
}
