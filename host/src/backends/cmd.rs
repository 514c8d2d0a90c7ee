//! `cmd:<command line>`: bring any program.

use std::ffi::OsStr;
use std::path::Path;

use archeflow_core::text::shell_word;

use super::Invocation;

/// Words the shell knows by itself.
const SHELL: [&str; 22] = [
    ".", ":", "[", "case", "cd", "command", "echo", "eval", "exec", "export", "false", "for", "if", "printf",
    "read", "set", "test", "true", "umask", "until", "while", "wait",
];

/// Through the shell, as the user typed it. Plain words need none: a program that can be started directly is, which
/// saves starting a shell; anything else, such as a script without a `#!` line, goes through
/// the shell after all.
pub(super) fn invocation(command: &str) -> Invocation {
    let plain = command.chars().all(|c| c.is_ascii_alphanumeric() || " ./_-,+@%".contains(c));
    let word = first_word(command);
    if plain && starts_by_itself(Path::new(word)) {
        let args = command.split_whitespace().skip(1).map(Into::into).collect();
        return Invocation { program: word.into(), args };
    }
    let simple = plain && !SHELL.contains(&word);
    let line = if simple { format!("exec {command}") } else { command.to_owned() };
    Invocation { program: "/bin/sh".into(), args: vec!["-c".into(), line.into()] }
}

/// An absolute path to a binary, or to a script that names its interpreter.
fn starts_by_itself(program: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0_u8; 4];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut magic));
    program.is_absolute() && read.is_ok() && (magic.starts_with(b"#!") || magic == *b"\x7fELF")
}

/// Agents run in a working copy of their own. A program named by a relative path is meant from where the user
/// is, so it is made absolute.
pub(super) fn from(command: &str, here: &Path) -> String {
    let word = first_word(command);
    if !word.contains('/') || word.starts_with('/') {
        return command.to_owned();
    }
    match here.join(word).canonicalize() {
        Ok(path) => format!(
            "{}{}",
            shell_word(&path.display().to_string()),
            command.get(word.len()..).unwrap_or_default()
        ),
        Err(_) => command.to_owned(),
    }
}

/// The name of a program that is not there, as far as can be determined without a shell.
pub(super) fn missing(command: &str, path: Option<&OsStr>) -> Option<String> {
    let word = first_word(command);
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "./_-+".contains(c));
    if !plain || SHELL.contains(&word) {
        return None;
    }
    let there = if word.contains('/') {
        !word.starts_with('/') || Path::new(word).exists()
    } else {
        std::env::split_paths(path?).any(|folder| folder.join(word).is_file())
    };
    (!there).then(|| word.to_owned())
}

fn first_word(command: &str) -> &str {
    command.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{from, invocation, missing};
    use std::ffi::OsStr;
    use std::path::Path;

    #[test]
    fn m_c1_a_program_that_is_not_there_is_named_beforehand() {
        let path = Some(OsStr::new("/bin:/usr/bin"));
        for (command, expected) in [
            ("sh -c true", None),
            ("no-such-program-anywhere --flag", Some("no-such-program-anywhere")),
            ("/no/such/program", Some("/no/such/program")),
            ("if true; then sh; fi", None),
            ("\"$HOME\"/agent", None),
            ("FOO=1 sh", None),
        ] {
            assert_eq!(missing(command, path).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn a_relative_program_is_resolved_against_the_current_directory() {
        assert_eq!(from("./sh -x", Path::new("/bin")).split(' ').next_back(), Some("-x"));
        assert!(from("./sh -x", Path::new("/bin")).starts_with('/'));
        assert_eq!(from("sh -x", Path::new("/bin")), "sh -x");
        assert_eq!(from("./no-such-file", Path::new("/bin")), "./no-such-file");
    }

    #[test]
    fn a_shell_is_started_only_where_one_is_needed() {
        for (command, program) in [
            ("/bin/sh -x", "/bin/sh"),
            ("/bin/ls -l /", "/bin/ls"),
            ("ls -l", "/bin/sh"),
            ("/etc/passwd", "/bin/sh"),
            ("/bin/ls | wc", "/bin/sh"),
            ("/bin/ls $HOME", "/bin/sh"),
        ] {
            assert_eq!(invocation(command).program, program, "{command}");
        }
        assert_eq!(invocation("/bin/ls -l /").args, ["-l", "/"]);
    }
}
