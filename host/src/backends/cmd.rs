//! `cmd:<command line>`: bring any program.

use super::Invocation;

/// Through the shell, as the user typed it. `exec` keeps a plain command from leaving a shell in between.
pub(super) fn invocation(command: &str) -> Invocation {
    let simple = command.chars().all(|c| c.is_ascii_alphanumeric() || " ./_-=,+@%".contains(c));
    let line = if simple { format!("exec {command}") } else { command.to_owned() };
    Invocation { program: "/bin/sh".into(), args: vec!["-c".into(), line.into()] }
}
