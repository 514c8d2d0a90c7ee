//! `cargo xtask soak`: simulated crashes and restarts, as many as a night has room for.
//!
//! The simulation is a test of the core (`core/tests/simulation.rs`); this asks it for more, from another seed each time.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::test;

const RESTARTS: u64 = 1_000_000;
const TEST: &str = "i3_i4_i6_i8_m_a3_m_a4_soak_of_crash_restarts";

#[derive(Debug, PartialEq, Eq)]
struct Asked {
    seed: Option<u64>,
    count: u64,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> ExitCode {
    let asked = match Asked::read(args) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("soak: {why}");
            return ExitCode::from(2);
        }
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (seed, count) = (asked.seed.unwrap_or(now).to_string(), asked.count.to_string());
    println!("soak: {count} crash-restarts from seed {seed}");
    let begun = Instant::now();
    let words = ["cargo", "test", "--release", "-p", "archeflow-core", "--test", "simulation", "--"];
    let words = [&words[..], &["--exact", TEST, "--nocapture"]].concat();
    let env = [("ARCHEFLOW_SOAK_SEED", seed.as_str()), ("ARCHEFLOW_SOAK_COUNT", count.as_str())];
    match test::through(root, &words, &env) {
        Ok(_) => {
            println!("soak: {count} crash-restarts kept every promise, {} s", begun.elapsed().as_secs());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("soak: {why}; the seed to repeat it with is printed above");
            ExitCode::FAILURE
        }
    }
}

impl Asked {
    fn read(args: &[&str]) -> Result<Asked, String> {
        let mut asked = Asked { seed: None, count: RESTARTS };
        for pair in args.chunks(2) {
            let [flag, value] = pair else { return Err(format!("`{}` needs a number", pair.concat())) };
            let number = value.parse().map_err(|_| format!("`{flag}` needs a number, not `{value}`"))?;
            match *flag {
                "--seed" => asked.seed = Some(number),
                "--count" => asked.count = number,
                flag => return Err(format!("`{flag}` is unknown; there are --seed and --count")),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_numbers() {
        assert_eq!(Asked::read(&[]), Ok(Asked { seed: None, count: RESTARTS }));
        let both = ["--count", "5", "--seed", "7"];
        assert_eq!(Asked::read(&both), Ok(Asked { seed: Some(7), count: 5 }));
        for (wrong, word) in
            [(&["--seed"][..], "--seed"), (&["--seed", "x"], "`x`"), (&["--speed", "1"], "--speed")]
        {
            let why = Asked::read(wrong).err().unwrap_or_default();
            assert!(why.contains(word), "{wrong:?}: {why}");
        }
    }

    /// Under another name the simulation would run no test at all, and pass.
    #[test]
    fn the_simulation_has_the_test() {
        let simulation = std::fs::read_to_string(crate::root().join("core/tests/simulation.rs"));
        assert!(simulation.is_ok_and(|text| text.contains(&format!("fn {TEST}()"))));
    }
}
