//! Who may do what to the world (R10, R14). Every list here is the whole list: a new line in it is a decision, and
//! is beside its reason.

use super::scan::SourceLine;
use super::{Complaint, Tree, complaint};

const PROGRAM: [&str; 5] = ["core/src/", "host/src/", "serve/src/", "fleet/src/", "app/src/"];

/// Git commands that can destroy work, or reach out of the machine. None of them has a use here, except for [`PUSHES`].
const NEVER: [&str; 7] = ["clean", "stash", "gc", "prune", "push", "filter-branch", "reflog"];

/// Words that destroy in company: a command, and what must not be in the same list of arguments.
const NEVER_TOGETHER: [(&str, &[&str]); 7] = [
    ("reset", &["--hard", "--merge", "--keep"]),
    ("checkout", &["-f", "--force"]),
    ("switch", &["-f", "--force", "--discard-changes"]),
    ("branch", &["-D", "-d", "--delete", "-f", "--force"]),
    ("worktree", &["remove", "prune", "--force"]),
    ("read-tree", &["--reset"]),
    (
        "push",
        &["-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune", "--all", "--tags"],
    ),
];

/// A table of words in reviews: `clean` is a verdict there, and the core starts no program.
const WORDS: &str = "core/src/read/words.rs";

/// Who may name a push (decision 083). Only what a person types leads there: no setting, no agent and no repository does.
/// Without force it adds commits to a branch of a remote, and removes none.
const PUSHES: [(&str, &str); 2] = [
    (
        "host/src/git/remote.rs",
        "`archeflow pr --push`, `archeflow run --remote` and `archeflow worker`, which a person types; never by force",
    ),
    ("app/src/commands/pr.rs", "prints the command for a person to type"),
];

/// A whole command line inside one literal, as a shell would get it.
const NEVER_IN_A_LINE: [&str; 9] = [
    "reset --hard",
    "git clean",
    "git stash",
    "git push",
    "git gc",
    "git prune",
    "branch -D",
    "worktree remove",
    "checkout -f",
];

pub(super) fn destructive_git(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, lines) in tree.sources(&PROGRAM) {
        for line in &lines {
            for string in &line.strings {
                let alone = NEVER.contains(&string.as_str()) && !path.ends_with(WORDS);
                let spelled_out = NEVER_IN_A_LINE.iter().any(|never| string.contains(never));
                let is_push = string == "push" || string.starts_with("git push origin ");
                if is_push && PUSHES.iter().any(|(file, _)| path.ends_with(file)) {
                    continue;
                }
                if alone || spelled_out {
                    found.push(complaint(path, line.number, format!("`{string}` can destroy work")));
                }
            }
        }
        for (command, never) in NEVER_TOGETHER {
            found.extend(
                together(&lines, command, never).map(|(line, word)| {
                    complaint(path, line, format!("`{command} {word}` can destroy work"))
                }),
            );
        }
    }
    found
}

/// Where one statement names a command and one of the words after it.
fn together<'a>(
    lines: &'a [SourceLine],
    command: &'a str,
    never: &'a [&str],
) -> impl Iterator<Item = (usize, &'a str)> {
    lines.iter().enumerate().filter(move |(_, line)| line.strings.iter().any(|s| s == command)).flat_map(
        move |(at, line)| {
            let end = lines[at..].iter().position(|line| line.code.trim_end().ends_with(';'));
            let statement = &lines[at..=(at + end.unwrap_or(0))];
            let words = statement.iter().flat_map(|line| &line.strings).map(String::as_str);
            words.filter(|word| never.contains(word)).map(|word| (line.number, word))
        },
    )
}

/// Who starts processes. All of them go through `children`, which the sweep for leftovers relies on.
const STARTERS: [(&str, &str); 13] = [
    ("fleet/src/server/process.rs", "the fleet's message server; it goes through `children`"),
    ("host/src/platform/macos.rs", "agents, tests and hooks, where `fork` is the way"),
    ("host/src/platform/watcher.rs", "the watcher, which is this program; it goes through `children`"),
    ("host/src/platform/children.rs", "starts and registers every process"),
    ("host/src/git/runner.rs", "the only place that runs git on a user's repository"),
    ("host/src/detached.rs", "commands of this program that a page starts; it goes through `children`"),
    ("host/src/notify/program.rs", "the user's own notifiers; it goes through `children`"),
    ("host/src/sandbox/inside.rs", "the program in the sandbox, from within; it goes through `children`"),
    ("host/src/sandbox/fallback.rs", "becomes the program in the sandbox, which starts none"),
    ("host/src/backends/script.rs", "plays an agent, which is a process of its own"),
    ("host/src/acp/bridge.rs", "the agent behind the bridge, which is a process of its own"),
    ("app/src/commands/demo.rs", "makes the sample repository"),
    ("app/src/commands/play.rs", "the other end of a scripted agent"),
];

pub(super) fn processes(tree: &Tree) -> Vec<Complaint> {
    outside(tree, &PROGRAM, &STARTERS, &["Command::new"], "starts a process")
}

pub(super) fn printing(tree: &Tree) -> Vec<Complaint> {
    let words = ["println!", "print!", "eprintln!", "eprint!", "io::stdout", "io::stderr"];
    let printers = [
        ("host/src/backends/script.rs", "an agent's answer is its standard output"),
        ("host/src/backends/sim.rs", "an agent's answer is its standard output"),
    ];
    outside(tree, &["core/src/", "host/src/", "serve/src/", "fleet/src/"], &printers, &words, "prints")
}

/// Results go through one place that checks and flushes every write, so a full disk is never reported as success.
pub(super) fn results(tree: &Tree) -> Vec<Complaint> {
    let words = ["println!", "print!", "eprintln!", "eprint!", "io::stdout", "io::stderr", "io::Stdout"];
    let printers = [
        ("app/src/output.rs", "prints every result"),
        ("app/src/say.rs", "the macros for messages"),
        ("app/src/render/text.rs", "asks for colours and widths, prints nothing"),
    ];
    let asks = ["is_terminal()", ".flush()", "IsTerminal"];
    let found = outside(tree, &["app/src/"], &printers, &words, "prints past app/src/output.rs");
    let is_question = |one: &Complaint| {
        let text = tree.get(&one.path).and_then(|text| text.lines().nth(one.line - 1));
        text.is_some_and(|line| asks.iter().any(|ask| line.contains(ask)))
    };
    found.into_iter().filter(|one| !is_question(one)).collect()
}

/// What changes files, as it is written in Rust.
const WRITES: [&str; 22] = [
    "fs::write(",
    "fs::rename(",
    "fs::copy(",
    "fs::remove_file(",
    "fs::remove_dir(",
    "fs::remove_dir_all(",
    "fs::create_dir(",
    "fs::create_dir_all",
    "fs::hard_link(",
    "symlink(",
    "fs::set_permissions(",
    "File::create",
    "File::options",
    "OpenOptions::new",
    "DirBuilder",
    "renameat(",
    "unlinkat(",
    "linkat(",
    "mkdirat(",
    "set_mode(",
    "set_mode_of(",
    "private_directory(",
];

/// Who changes files, and which.
const WRITERS: [(&str, &str); 79] = [
    ("host/src/platform/removal.rs", "removes a folder that its caller names, however deep it is"),
    (
        "host/src/platform/kernel.rs",
        "opens a setting of the kernel from inside the sandbox, and writes nothing",
    ),
    (
        "host/src/sandbox/selftest.rs",
        "a folder of its own in the temporary folder, which the sandbox is to hide",
    ),
    ("fleet/src/mirror.rs", "copies of a fleet's journals, in the state folder"),
    ("fleet/src/clones.rs", "clones of a worker's repositories, and what is left of half a clone"),
    ("fleet/src/shift.rs", "the folder of a worker, and one for its sockets in the temporary folder"),
    ("fleet/src/shift/trial.rs", "evaluations that a worker has trials of, in its folder"),
    (
        "fleet/src/conductor/trials.rs",
        "repositories of trials in the folder that the user names, and journals in the evaluation's",
    ),
    ("fleet/src/shift/held.rs", "which orders a worker holds, in its folder"),
    ("fleet/src/join.rs", "join files, each once and for its owner only"),
    ("fleet/src/server/folder.rs", "the folder of a fleet's server, and join files of removed members"),
    ("host/src/telemetry/tools.rs", "which tools an agent used, in the folder of its attempt"),
    ("host/src/detached.rs", "what a command that a page started prints, in a file without a name"),
    ("host/src/control/mod.rs", "the folder of the control sockets, private to the user"),
    ("host/src/control/server.rs", "the control socket of a run, made and removed"),
    ("host/src/platform/files.rs", "the steps that the others take"),
    ("host/src/cleaning/disk.rs", "removes what nothing needs any more"),
    ("host/src/cleaning/runs.rs", "the control socket of a run that is removed"),
    ("host/src/failpoint.rs", "a trace for the crash tests, in debug builds only"),
    ("host/src/store/dir.rs", "the folder handle all state goes through"),
    ("host/src/store/files.rs", "small files in one step"),
    ("host/src/store/places.rs", "the folders themselves"),
    ("host/src/forge/record.rs", "what was posted on a pull request, in the state folder"),
    ("host/src/store/notified.rs", "which messages were sent, in the state folder"),
    ("host/src/store/presence.rs", "locks of those who look at a run, in the state folder"),
    ("host/src/store/breakers.rs", "which accounts are limited, in the state folder"),
    ("host/src/config/trust.rs", "what the user approved"),
    ("host/src/client_setup/mod.rs", "what makes a coding agent know archeflow, after a person agreed"),
    ("host/src/proc/sink.rs", "what a process prints"),
    ("host/src/model_agent/tools/tree.rs", "what a Maker without a client writes, in its working copy"),
    ("host/src/executors/agent/mod.rs", "an attempt's scratch folder"),
    ("host/src/executors/agent/folder.rs", "an attempt's folder"),
    ("host/src/executors/agent/parts.rs", "the answer of an attempt that read a diff in parts"),
    ("host/src/sandbox/npm_cache.rs", "npm's cache in the home of a sandbox"),
    ("host/src/executors/confined.rs", "an agent's home, with links to the user's settings and logins"),
    ("host/src/executors/client.rs", "the homes of clients, and a login that one of them renewed"),
    ("host/src/probe.rs", "a home in the temporary folder while a client says its version"),
    ("host/src/trial.rs", "the folder and the home of an agent that is tried, in our state"),
    ("host/src/executors/checks.rs", "the scratch folder of tests and hooks"),
    ("host/src/world.rs", "the private folders of a command in the sandbox"),
    ("host/src/open/try_commands.rs", "the output of commands that `init` tries"),
    ("host/src/eval/copy.rs", "copies of a task's repository, in a temporary folder of their own"),
    (
        "host/src/eval/confined.rs",
        "the private folders of a task's commands, in a temporary folder of their own",
    ),
    ("host/src/eval/run/folder.rs", "the folder of an evaluation, which the user names"),
    ("host/src/eval/pack.rs", "an arm that came with an order, in a folder that the caller names"),
    ("host/src/git/fresh.rs", "bare repositories of trials, in a folder that the caller names"),
    (
        "host/src/eval/run/trial.rs",
        "repositories of trials in that folder, and an empty one in a temporary folder",
    ),
    ("host/src/eval/run/measure.rs", "copies of what a trial built, in a temporary folder of their own"),
    ("host/src/eval/check.rs", "the private folders of a task's commands, in the same temporary folder"),
    (
        "host/src/executors/build_cache.rs",
        "build results that are kept, and their copy in the copy of a test",
    ),
    ("host/src/executors/landing.rs", "the notes of a landing"),
    ("host/src/executors/preflight.rs", "which trees passed their tests"),
    ("host/src/executors/setup.rs", "what a setup command installed, and the copy it ran in"),
    ("host/src/agent_loop/cycle.rs", "the cycle file in the user's working tree, and its lock"),
    ("host/src/executors/old_tests.rs", "tests from before a change, in a scratch copy of it"),
    ("host/src/projections.rs", "files that follow from the log"),
    ("host/src/git/bundle.rs", "a bundle that carries a run, in a git directory of its own"),
    ("host/src/transfer.rs", "an imported run: artifacts and journal; and files that a bundle is made of"),
    ("host/src/transfer/take_over.rs", "attempts of lines that gave way to another session's"),
    ("host/src/rollback.rs", "artifacts of phases that a run goes back to or before"),
    ("host/src/git/files.rs", "files of our own git directories"),
    ("host/src/git/native/checkout.rs", "files of working copies"),
    ("host/src/git/native/index.rs", "opens files of working copies to read them"),
    ("host/src/git/native/writing.rs", "objects, in a copy's store and in the user's"),
    ("host/src/git/native/refs.rs", "refs of our own"),
    ("host/src/git/subject/mod.rs", "stores of reviewed changes"),
    ("host/src/git/subject/patch.rs", "stores of reviewed changes"),
    ("host/src/git/subject/tree.rs", "stores of reviewed changes"),
    ("host/src/review/mod.rs", "stores of reviewed changes"),
    ("host/src/review/history.rs", "what earlier reviews saw"),
    ("host/src/executors/evidence.rs", "the scratch folder of a reproduction"),
    ("host/src/git/workspace/mod.rs", "working copies"),
    ("host/src/git/workspace/slot.rs", "working copies"),
    ("host/src/git/workspace/collect.rs", "working copies"),
    ("host/src/git/land/settle.rs", "brings the user's checkout to the landed commit"),
    ("host/src/backends/script.rs", "plays an agent, in its working copy"),
    ("host/src/backends/sim.rs", "simulates an agent, in its working copy"),
    ("app/src/commands/demo.rs", "the sample repository"),
    ("app/src/commands/doctor.rs", "tries whether the disk keeps its promises"),
];

/// `init` and `explain --eject` make files for the user through `store::files`; only the folder is made directly.
const FOLDER_MAKERS: [(&str, &str); 2] = [
    ("app/src/commands/explain.rs", "the folder of an ejected persona"),
    ("host/src/config/bundle.rs", "the folders of a bundle's files"),
];

pub(super) fn file_writes(tree: &Tree) -> Vec<Complaint> {
    let mut found = outside(tree, &PROGRAM, &WRITERS, &WRITES, "changes files");
    let makes_folder = |one: &Complaint| {
        FOLDER_MAKERS.iter().any(|(path, _)| *path == one.path) && one.what.contains("fs::create_dir_all")
    };
    found.retain(|one| !makes_folder(one));
    found
}

fn outside(
    tree: &Tree,
    folders: &[&str],
    allowed: &[(&str, &str)],
    words: &[&str],
    what: &str,
) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, lines) in tree.sources(folders).filter(|(path, _)| !allowed.iter().any(|(ok, _)| ok == path)) {
        for line in lines {
            if let Some(word) = words.iter().find(|word| names(&line.code, word)) {
                let what = format!("`{}` {what}, and this file may not", word.trim_end_matches('('));
                found.push(complaint(path, line.number, what));
            }
        }
    }
    found
}

/// Whether the code holds the word, and not merely a longer one that ends with it.
fn names(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    #[test]
    fn r10_destructive_git() {
        for text in [
            "git.args([\"clean\", \"-fdx\"]);",
            "git.arg(\"push\");",
            "git.args([\"reset\", \"--hard\"]);",
            "git.args([\"branch\"])\n    .arg(\"-D\");",
            "git.args([\"worktree\", \"remove\", path]);",
            "sh(\"git stash && git pull\");",
            "sh(\"git reset --hard HEAD\");",
        ] {
            complains(destructive_git, &[("host/src/a.rs", text)], &["host/src/a.rs:1"]);
        }
        for text in [
            "git.args([\"worktree\", \"list\"]);",
            "list.push(\"x\");",
            "// never reset --hard",
            "read(git, b\"refs/stash\");",
            "git.args([\"branch\", \"--list\"]);\nother.arg(\"-D\");",
        ] {
            complains(destructive_git, &[("host/src/a.rs", text)], &[]);
        }
    }

    #[test]
    fn r10_one_push_that_a_person_types() {
        let push = "let args = [\"push\", \"--no-verify\", remote, &refspec];";
        let printed = "format!(\"git push origin {commit}\");";
        complains(destructive_git, &[(PUSHES[0].0, push), (PUSHES[1].0, printed)], &[]);
        complains(destructive_git, &[("host/src/a.rs", push)], &["host/src/a.rs:1"]);
        complains(destructive_git, &[("host/src/a.rs", printed)], &["host/src/a.rs:1"]);
        for force in ["-f", "--force", "--force-with-lease", "--mirror", "--delete", "--tags", "--all"] {
            let text = format!("let args = [\"push\", \"{force}\", remote];");
            complains(destructive_git, &[(PUSHES[0].0, &text)], &[&format!("{}:1", PUSHES[0].0)]);
        }
        complains(
            destructive_git,
            &[(PUSHES[1].0, "sh(\"git push --force\");")],
            &["app/src/commands/pr.rs:1"],
        );
    }

    #[test]
    fn r14_processes() {
        let text = "let c = Command::new(\"x\");";
        complains(processes, &[("host/src/a.rs", text)], &["host/src/a.rs:1"]);
        complains(processes, &[("core/src/a.rs", text)], &["core/src/a.rs:1"]);
        complains(processes, &[("host/src/git/runner.rs", text), ("xtask/src/a.rs", text)], &[]);
    }

    #[test]
    fn r14_printing() {
        let text = "\n    println!(\"x\");";
        complains(printing, &[("host/src/a.rs", text)], &["host/src/a.rs:2"]);
        complains(printing, &[("app/src/a.rs", text), ("core/src/b.rs", "// println!")], &[]);
    }

    #[test]
    fn u_07_results_go_through_one_place() {
        let writes = "let mut out = std::io::stdout().lock();\nlet a = std::io::stdout().is_terminal();";
        complains(results, &[("app/src/commands/list.rs", writes)], &["app/src/commands/list.rs:1"]);
        complains(results, &[("app/src/a.rs", "println!(\"x\");")], &["app/src/a.rs:1"]);
        complains(results, &[("app/src/output.rs", writes), ("xtask/src/a.rs", writes)], &[]);
    }

    #[test]
    fn r14_file_writes() {
        for text in ["std::fs::write(a, b)", "fs::remove_dir_all(a)", "File::create(a)"] {
            complains(file_writes, &[("host/src/a.rs", text)], &["host/src/a.rs:1"]);
            complains(
                file_writes,
                &[("app/src/commands/explain.rs", text)],
                &["app/src/commands/explain.rs:1"],
            );
            complains(file_writes, &[("host/src/store/files.rs", text)], &[]);
        }
        let tested = "#[cfg(test)]\nmod tests {\n    fn f() { fs::write(a, b) }\n}";
        complains(file_writes, &[("host/src/a.rs", tested)], &[]);
        complains(file_writes, &[("app/src/commands/explain.rs", "fs::create_dir_all(a)")], &[]);
    }
}
