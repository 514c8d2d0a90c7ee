//! The user's own notifiers: started in a group of their own, fed, and ended after a while.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::platform::children;
use crate::platform::process::{killed_by, own_group};
use crate::proc;

/// Runs a program to its end, with this on its standard input.
pub(super) fn run(
    program: &str,
    args: &[&str],
    input: &[u8],
    dir: &Path,
    limit: Duration,
) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = children::spawn(own_group(&mut command)).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return format!("`{program}` is not installed");
        }
        format!("`{program}` can't be started: {error}")
    })?;
    // Less than a pipe takes, so this does not wait. Who does not want to read it need not.
    let fed = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input));
    let (tell, ended) = channel();
    let id = child.id();
    let waiting =
        std::thread::Builder::new().name("notifier".into()).stack_size(128 * 1024).spawn(move || {
            children::await_death(id);
            let _ = tell.send(());
        });
    let late = match &waiting {
        Ok(_) => matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout)),
        Err(_) => true,
    };
    if late {
        proc::kill_family(&child);
    }
    let status = children::wait(&mut child).map_err(|error| error.to_string())?;
    match (late, status.code()) {
        (true, _) => Err(format!("it took longer than {} s", limit.as_secs())),
        (false, Some(0)) => match fed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
            Ok(()) | Err(_) => Ok(()),
        },
        (false, Some(code)) => Err(format!("it ended with exit code {code}")),
        (false, None) => Err(format!("signal {} ended it", killed_by(status).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_a_program_is_fed_and_ended_after_a_while() {
        let long = Duration::from_secs(900);
        let dir = Path::new("/");
        let sh = |script: &str, limit| run("/bin/sh", &["-c", script], b"words", dir, limit);
        assert_eq!(sh("test \"$(cat)\" = words", long), Ok(()));
        assert_eq!(sh("exit 0", long), Ok(()), "it need not read");
        assert_eq!(sh("exit 3", long), Err("it ended with exit code 3".to_owned()));
        assert_eq!(sh("kill -9 $$", long), Err("signal 9 ended it".to_owned()));
        let forever = sh("sleep 100000 & wait", Duration::ZERO);
        assert_eq!(forever, Err("it took longer than 0 s".to_owned()));
        let none = run("no-such-notifier", &[], b"", dir, long);
        assert_eq!(none, Err("`no-such-notifier` is not installed".to_owned()));
    }
}
