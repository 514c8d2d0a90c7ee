//! Proof by killing: the program is ended with SIGKILL wherever it can hurt, resumed, and audited.
//!
//! Names like M-A1 and I6 are those of the fault matrix and its invariants.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "crash/audit.rs"]
mod audit;
#[path = "crash/planted.rs"]
mod planted;
#[path = "crash/proof.rs"]
mod proof;
#[path = "crash/review.rs"]
mod review;
#[path = "crash/scene.rs"]
mod scene;
#[path = "crash/stages.rs"]
mod stages;
#[path = "harness/user.rs"]
#[expect(dead_code, reason = "what the other end-to-end tests need is in it as well")]
mod user;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use archeflow_core::event::{Decision, Entry, Event, Order, Report, Verb};
use archeflow_core::model::Role;
use archeflow_core::run::Run;

use audit::Users;
use proof::{golden, kill_at, sweep, tell};
use scene::{Ended, Scene, TOKENS, finish, start};
use user::{as_strs, wait_until};

/// Every time the golden run passes a place, as a point to kill it at.
fn points(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let places = golden().places.iter().filter(|(place, _)| wanted(place));
    places.flat_map(|(place, times)| (1..=*times).map(move |n| format!("{place}:{n}"))).collect()
}

/// M-A1: after every batch, before anything that follows from it.
#[test]
fn m_a1_killed_after_every_batch() {
    let mut points = points(|place| place == "recorded");
    points.push(format!("recorded:{}", points.len() + 1));
    let killed = sweep(&points, |point| kill_at(point, &[]));
    tell(&format!("M-A1: {killed} kill points"));
    assert_eq!(killed + 1, points.len(), "only the last point lies beyond the end");
}

/// M-A2: between every effect and its record.
#[test]
fn m_a2_killed_between_effect_and_record() {
    let points = points(|place| place == "performed");
    let killed = sweep(&points, |point| kill_at(point, &[]));
    tell(&format!("M-A2: {killed} kill points"));
    assert_eq!(killed, points.len());
}

/// M-A2, inside the effects and the observers.
#[test]
fn m_a2_killed_inside_every_effect() {
    let points = points(|place| place != "recorded" && place != "performed");
    let killed = sweep(&points, |point| kill_at(point, &[]));
    tell(&format!("M-A2 (inside): {killed} kill points"));
    assert_eq!(killed, points.len());
}

/// Every place in the program's table is passed by the golden run, or by one that is resumed, taken back or removed.
#[test]
fn every_place_is_known() {
    let elsewhere = [
        "swept",
        "caught_up",
        "recover.settled",
        "recover.done",
        "revert.built",
        "rollback.files",
        "cleaning.part_removed",
        "cleaning.unlisted",
    ];
    for (place, _) in archeflow_host::failpoint::PLACES {
        // Passed in `agent_loop.rs`, `forge.rs`, `transfer.rs`, `remote.rs` and `replica.rs`.
        let others = ["loop.", "battery.", "forge.", "import.", "turn.", "replica."];
        let others = others.iter().any(|kind| place.starts_with(kind));
        let passed = others || golden().places.contains_key(place);
        assert!(passed || elsewhere.contains(&place), "nothing comes to {place}");
    }
}

/// M-A4: killed while resuming, five times over.
#[test]
fn m_a4_killed_while_resuming_five_deep() {
    let plain = ["swept:1", "caught_up:1", "recorded:1", "projected:1", "observed:1"];
    let later = ["recorded:2", "performed:1", "recorded:1", "agent.ended:1", "agent.done:1"];
    let work = ["work.collected:1", "work.published:1", "caught_up:1", "performed:1", "recorded:2"];
    let landing = ["recover.settled:1", "recover.settled:1", "swept:1", "recover.done:1", "performed:1"];
    let mut chains: Vec<(String, [&str; 5])> = Vec::new();
    let batches = golden().places["recorded"];
    chains.extend((1..=batches).step_by(3).map(|n| (format!("recorded:{n}"), plain)));
    chains.extend((2..=batches).step_by(3).map(|n| (format!("recorded:{n}"), later)));
    chains.extend(["agent.done:3", "work.collected:1", "work.published:2"].map(|at| (at.to_owned(), work)));
    chains.extend(["land.moved:1", "land.committed:1", "land.prepared:1"].map(|at| (at.to_owned(), landing)));
    let killed = sweep(&chains, |(first, again)| kill_at(first, again));
    tell(&format!("M-A4: {killed} chains of up to 6 kills"));
    assert_eq!(killed, chains.len());
}

/// A number between 0 and 1, the same for the same seed.
fn chance(seed: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    for _ in 0..4 {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
    }
    f64::from(u32::try_from(x >> 32).unwrap()) / f64::from(u32::MAX)
}

/// Kills a command after a while; only itself, not what it started.
fn kill_after(scene: &Scene, args: &[&str], wait: Duration) -> Ended {
    let (mut child, said) = start(scene.command(args));
    std::thread::sleep(wait);
    child.kill().unwrap();
    finish(&mut child, &said)
}

/// M-A3: killed at any instant, then once more while resuming.
#[test]
fn m_a3_killed_at_random_instants() {
    golden();
    let measure = || {
        let (scene, clock) = (Scene::new(), Instant::now());
        assert_eq!(scene.run(None).code, Some(0));
        clock.elapsed()
    };
    let took = (0..3).map(|_| measure()).min().unwrap();
    let seeds: Vec<u64> = (1..=30).collect();
    let killed = sweep(&seeds, |seed| {
        let named = |what: String| format!("seed {seed}: {what}");
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        let args = scene.run_args();
        let args = as_strs(&args);
        let ended = kill_after(&scene, &args, took.mul_f64(1.2 * chance(*seed)));
        let Some(id) = scene.ids().pop() else {
            audit::users_work(&scene.repo(), &before, 0).map_err(named)?;
            return Ok(ended.killed);
        };
        kill_after(&scene, &["resume", &id, "--unattended"], took.mul_f64(0.8 * chance(seed + 1_000)));
        let begun = audit::journal(&scene.journal()).map_err(named)?;
        if begun.is_empty() {
            let again = scene.resume(None);
            if again.code != Some(2) || !again.said.contains("never began") {
                return Err(named(format!("{:?} for a run that never began: {}", again.code, again.said)));
            }
            audit::users_work(&scene.repo(), &before, 0).map_err(named)?;
            return Ok(ended.killed);
        }
        proof::see_through(&scene, &[]).map_err(named)?;
        proof::check(&scene, &before, golden()).map_err(named)?;
        Ok(ended.killed)
    });
    tell(&format!("M-A3: {killed} of 30 random instants hit a living program"));
    assert!(killed > 5, "only {killed} of 30 hit a living program");
}

/// An executor that panics takes nothing else with it: the program says so and ends, and the run is resumed from there.
#[test]
fn m_a2_m_a7_a_panic_in_an_executor_is_reported_and_the_run_resumes() {
    for place in ["agent.housed:1", "tests.ran:1", "work.collected:1"] {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        let args = scene.run_args();
        let mut command = scene.command(&as_strs(&args));
        command.env("ARCHEFLOW_FAILPOINT_PANIC", place);
        let (mut child, said) = start(command);
        let ended = finish(&mut child, &said);
        assert_eq!(ended.code, Some(30), "{place}: {}", ended.said);
        assert!(ended.said.contains("a fault of this program"), "{place}: {}", ended.said);
        proof::see_through(&scene, &[]).unwrap();
        proof::check(&scene, &before, golden()).unwrap();
    }
}

/// A run that was claimed and never began is told so, whatever is asked of it.
#[test]
fn a_run_that_never_began_is_reported() {
    let scene = Scene::new();
    scene.run(Some("recorded:1"));
    fs::write(scene.journal(), "").unwrap();
    let again = scene.resume(None);
    assert_eq!(again.code, Some(2), "{}", again.said);
    assert!(again.said.contains("never began"), "{}", again.said);
    assert_eq!(fs::read(scene.journal()).unwrap(), b"", "nothing may be written to it");
}

fn args_with_agent(scene: &Scene, agent: &str) -> Vec<String> {
    let mut args = scene.run_args();
    let at = args.iter().position(|arg| arg == "--agent").unwrap();
    args[at + 1] = agent.to_owned();
    args
}

/// M-A3, I2, I5: killed while a Maker is at work that has a process in another session. What it had done is kept,
/// whatever it left running is ended, a stranger's process is not.
#[test]
fn m_a3_killed_while_an_agent_works() {
    let late = &["work.collected:1", "work.published:1", "performed:1"][..];
    for (again, sandboxed) in
        [(&[][..], false), (&["swept:1"][..], false), (late, false), (&[][..], true), (late, true)]
    {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        let args = args_with_agent(&scene, &stages::shell_agent(&scene, stages::LINGERS));
        let mut args = as_strs(&args);
        if !sandboxed {
            args.push("--unsafe-no-sandbox");
        }
        let (mut child, said) = start(scene.command(&args));
        let lingered = scene.base().join("lingered");
        wait_until(|| lingered.exists(), || fs::read_to_string(&said).unwrap());
        child.kill().unwrap();
        finish(&mut child, &said);
        let entries = audit::journal(&scene.journal()).unwrap();
        if !sandboxed {
            // A sandbox ends with the program.
            audit::no_process(&entries).expect_err("the agent outlives the program that is killed");
        }
        let mut decoy = std::process::Command::new("sleep")
            .arg("60")
            .env("ARCHEFLOW_TAG", format!("{}.0000000000000000.7", scene.id()))
            .spawn()
            .unwrap();

        proof::see_through(&scene, again).unwrap();
        proof::check(&scene, &before, golden()).unwrap();
        let ledger = fs::read_to_string(scene.base().join("ledger")).unwrap();
        assert!(ledger.lines().count() >= 4, "{ledger}");
        let entries = audit::journal(&scene.journal()).unwrap();
        let lost: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                if let Event::Report(Report::AgentLost(lost)) = &entry.event { Some(lost) } else { None }
            })
            .collect();
        assert_eq!(lost.len(), 1);
        assert!(lost[0].kept_as.is_some(), "the log says where the work is kept ({again:?})");
        assert!(decoy.try_wait().unwrap().is_none(), "a process of somebody else was ended");
        decoy.kill().unwrap();
        decoy.wait().unwrap();
    }
}

fn questions(entries: &[Entry]) -> Vec<u64> {
    let asked = entries.iter().filter(|entry| matches!(entry.event, Event::Order(Order::QuestionAsked(_))));
    asked.map(|entry| entry.seq).collect()
}

/// M-A12: a question that was open stays the same question; one that was answered is not asked again.
#[test]
fn m_a12_a_question_is_asked_once() {
    let stage = || {
        let scene = Scene::new();
        let args = args_with_agent(&scene, &stages::shell_agent(&scene, stages::ASKS));
        (scene, args)
    };
    // Without a crash: asked once; the second cycle's brief holds the answer.
    let (scene, args) = stage();
    let (ended, places) = scene.traced(scene.command(&as_strs(&args)));
    assert_eq!(ended.code, Some(10), "{}", ended.said);
    let asked = questions(&audit::journal(&scene.journal()).unwrap());
    assert_eq!(asked.len(), 1);
    let answer = ["answer", &scene.id(), "In Latin", "--unattended", "--auto-merge"].map(str::to_owned);
    let (ended, after) = scene.traced(scene.command(&as_strs(&answer)));
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let golden = audit::decisions(&audit::journal(&scene.journal()).unwrap());

    // The crash comes while it is open: half of its batch is on disk.
    let (scene, args) = stage();
    scene.call(&as_strs(&args), None);
    let text = fs::read_to_string(scene.journal()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let seq = asked[0] as usize;
    fs::write(scene.journal(), lines[..seq].concat()).unwrap();
    let ended = scene.resume(None);
    assert_eq!(ended.code, Some(10), "{}", ended.said);
    assert_eq!(questions(&audit::journal(&scene.journal()).unwrap()), asked);
    let status = scene.call(&["status", &scene.id(), "--json"], None);
    assert!(status.said.contains(&format!("\"seq\":{seq}")), "{}", status.said);
    // The same question can still be answered.
    let ended = scene.call(&as_strs(&answer), None);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let entries = audit::journal(&scene.journal()).unwrap();
    assert_eq!(questions(&entries), asked);

    // The crash comes before it is asked, or right after it is answered.
    let mut points: Vec<(String, Option<String>)> = Vec::new();
    points.extend((1..=places["recorded"]).map(|n| (format!("recorded:{n}"), None)));
    let batches = after["recorded"] - places["recorded"];
    points.extend((1..=batches.min(4)).map(|n| (String::new(), Some(format!("recorded:{n}")))));
    points.push((String::new(), Some("performed:1".to_owned())));
    let killed = sweep(&points, |(before, after)| {
        let named = |what: String| format!("{before} {after:?}: {what}");
        let (scene, args) = stage();
        let ended = scene.call(&as_strs(&args), Some(before));
        if ended.killed && questions(&audit::journal(&scene.journal())?).is_empty() {
            let ended = scene.resume(None);
            if ended.code != Some(10) {
                return Err(named(ended.said));
            }
        }
        let ended = scene.call(&as_strs(&answer), after.as_deref());
        if ended.killed {
            proof::see_through(&scene, &[]).map_err(named)?;
        } else if ended.code != Some(0) {
            return Err(named(ended.said));
        }
        let entries = audit::journal(&scene.journal()).map_err(named)?;
        audit::same_decisions(&golden, &entries).map_err(named)?;
        if questions(&entries).len() == 1 { Ok(true) } else { Err(named("asked twice".to_owned())) }
    });
    tell(&format!("M-A12: {killed} kill points"));
}

/// M-B1: the tail of an unfinished write is set aside and the run goes on; the user is told.
#[test]
fn m_b1_a_torn_tail_is_cut_and_reported() {
    let batches = 1..=golden().places["recorded"];
    let cuts = [1, 12, usize::MAX].into_iter().cycle();
    let points: Vec<(u64, usize)> =
        batches.zip(cuts).chain([(6, 1), (6, 12), (9, 1), (9, usize::MAX)]).collect();
    let cut = sweep(&points, |(batch, bytes)| {
        let named = |what: String| format!("batch {batch}, {bytes} bytes: {what}");
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        scene.run(Some(&format!("recorded:{batch}")));
        let whole = fs::read(scene.journal()).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // At most all but one byte of the last line.
        let end = (whole.len() - (*bytes).min(whole.len() - last - 1)).max(1);
        fs::write(scene.journal(), &whole[..end]).unwrap();
        let ended = scene.resume(None);
        if ended.code != Some(0) || !ended.said.contains("torn") {
            return Err(named(format!("{:?}: {}", ended.code, ended.said)));
        }
        let torn = fs::read(scene.events().join(format!("{}.torn-1", scene.id()))).unwrap_or_default();
        if torn != whole[last..end] {
            return Err(named("what was cut off is not set aside".to_owned()));
        }
        proof::check(&scene, &before, golden()).map_err(named)?;
        Ok(true)
    });
    tell(&format!("M-B1: {cut} torn tails"));
}

/// Damage that no crash explains stops everything and is left as it is.
#[test]
fn m_b3_a_flipped_byte_stops_everything() {
    let scene = Scene::new();
    let before = Users::look(&scene.repo());
    scene.run(Some("recorded:9"));
    let whole = fs::read(scene.journal()).unwrap();
    for part in [3, 5, 9] {
        let mut bytes = whole.clone();
        bytes[whole.len() * part / 10] ^= 1;
        fs::write(scene.journal(), &bytes).unwrap();
        let names = || {
            fs::read_dir(scene.events()).unwrap().flatten().map(|e| e.file_name()).collect::<BTreeSet<_>>()
        };
        let there = names();
        let ended = scene.resume(None);
        assert_eq!(ended.code, Some(40), "{}", ended.said);
        assert_eq!(fs::read(scene.journal()).unwrap(), bytes, "the damaged log was touched");
        let mut now = names();
        now.retain(|name| !name.to_string_lossy().ends_with(".holder"));
        let there: BTreeSet<_> =
            there.into_iter().filter(|n| !n.to_string_lossy().ends_with(".holder")).collect();
        assert_eq!(now, there);
    }
    audit::users_work(&scene.repo(), &before, 0).unwrap();
}

/// I3, I6: wherever the log ends, the core draws the same conclusions again, word for word.
#[test]
fn i3_every_prefix_leads_to_the_same_lines() {
    let entries = &golden().entries;
    for cut in 1..=entries.len() {
        let mut run = Run::replay(&entries[..cut]);
        if run.outcome.is_some() {
            continue;
        }
        let drawn = run.settle(run.last);
        let rest = entries[cut..].iter().take_while(|entry| entry.event.verb() != Verb::Reported);
        // A remark whose batch was torn may be made once more; nothing follows from it.
        let since = entries[..cut].iter().rev().take_while(|entry| entry.event.verb() != Verb::Reported);
        let mut said: Vec<&Event> = since.map(|entry| &entry.event).collect();
        let drawn: Vec<Event> = drawn.iter().map(|entry| entry.event.clone()).collect();
        let mut new: Vec<&Event> = Vec::new();
        for event in &drawn {
            let is_remark =
                matches!(event, Event::Decision(Decision::DecisionPoint(_) | Decision::DecisionRecord(_)));
            if !is_remark || !said.contains(&event) {
                new.push(event);
                said.push(event);
            }
        }
        let drawn = new;
        let expected: Vec<&Event> = rest.map(|entry| &entry.event).collect();
        // Of reviewers that were to go out together, some may go when the others are back; a torn tail shows that.
        let together = |event: &&&Event| matches!(event, Event::Order(Order::AgentStart(start)) if start.role == Role::Reviewer);
        if drawn.is_empty()
            && run.open_agents().next().is_some()
            && expected.iter().all(|event| together(&event))
        {
            continue;
        }
        assert_eq!(drawn, expected, "after line {cut}");
    }
}

/// M-F5: the landing turned out red; killed anywhere from there on, the revert is completed as a new commit.
#[test]
fn m_f5_a_revert_is_completed() {
    let stage = || {
        let scene = Scene::new();
        // The test command looks at the user's branch, which it can't without being allowed to; Makers write down what
        // they did.
        let (repo, base) = (scene.repo(), scene.base());
        let sandbox =
            format!("sandbox:\n  read: [\"{}\"]\n  write: [\"{}\"]\n", repo.display(), base.display());
        scene.configure(&format!("git:\n  post_merge_test: true\n{sandbox}"));
        let base = scene.git(&["rev-parse", "main"]).trim().to_owned();
        let mut args = scene.run_args();
        let at = args.iter().position(|arg| arg == "--test-command").unwrap();
        args[at + 1] = format!(
            "sh tests/run.sh && [ \"$(git -C '{}' rev-parse main)\" = {base} ]",
            scene.repo().display()
        );
        (scene, args)
    };
    let (scene, args) = stage();
    let before = Users::look(&scene.repo());
    let (ended, places) = scene.traced(scene.command(&as_strs(&args)));
    let entries = audit::journal(&scene.journal()).unwrap();
    let code = ended.code;
    let golden = audit::decisions(&entries);
    assert!(golden.iter().any(|line| line.starts_with("run.reverted")), "{}\n{golden:#?}", ended.said);
    audit::users_work(&scene.repo(), &before, 2).unwrap();

    let batches = places["recorded"];
    let mut points: Vec<String> = (batches - 4..=batches).map(|n| format!("recorded:{n}")).collect();
    points.extend((places["performed"] - 3..=places["performed"]).map(|n| format!("performed:{n}")));
    for place in ["land.prepared", "land.moved", "land.committed", "tests.ran"] {
        points.extend((1..=places[place]).map(|n| format!("{place}:{n}")));
    }
    points.extend([
        "revert.built:1".to_owned(),
        format!("projected:{batches}"),
        format!("observed:{batches}"),
    ]);
    let killed = sweep(&points, |point| {
        let named = |what: String| format!("{point}: {what}");
        let (scene, args) = stage();
        let before = Users::look(&scene.repo());
        if !scene.call(&as_strs(&args), Some(point)).killed {
            return Ok(false);
        }
        let ended = scene.resume(None);
        if ended.code != code && !ended.said.contains("the run has ended") {
            return Err(named(format!("{:?}: {}", ended.code, ended.said)));
        }
        let entries = audit::journal(&scene.journal()).map_err(named)?;
        audit::same_decisions(&golden, &entries).map_err(named)?;
        audit::ends(&entries, 1).map_err(named)?;
        audit::users_work(&scene.repo(), &before, 2).map_err(named)?;
        audit::tested_is_landed(&scene.repo(), &entries).map_err(named)?;
        audit::no_process(&entries).map_err(named)?;
        audit::reachable(&scene.repo(), TOKENS).map_err(named)?;
        audit::listed(&scene.events(), &scene.id(), "wiggum_break").map_err(named)?;
        let trees = scene.git(&["log", "--first-parent", "--format=%T", "-3", "main"]);
        let trees: Vec<&str> = trees.lines().collect();
        if trees.len() == 3 && trees[0] == trees[2] && trees[0] != trees[1] {
            return Ok(true);
        }
        Err(named(format!("the revert is not a commit of its own: {trees:?}")))
    });
    tell(&format!("M-F5: {killed} kill points"));
    assert_eq!(killed, points.len());
}

fn other_args(scene: &Scene) -> Vec<String> {
    let play = scene.base().join("other.play");
    fs::write(&play, stages::OTHER).unwrap();
    let agent = format!("script:{}", play.display());
    let args = ["run", "Add another file", "--workflow", "fast", "--strategy", "pdca", "--agent", &agent]
        .into_iter()
        .chain(["--test-command", "sh tests/run.sh", "--auto-merge", "--unattended"]);
    args.map(str::to_owned).collect()
}

fn both_landed(scene: &Scene, before: &Users) {
    let ids = scene.ids();
    assert_eq!(ids.len(), 2);
    for id in ids {
        let entries = audit::journal(&scene.events().join(format!("{id}.jsonl"))).unwrap();
        audit::tested_is_landed(&scene.repo(), &entries).unwrap();
        audit::no_process(&entries).unwrap();
        audit::listed(&scene.events(), &id, "merged").unwrap();
    }
    audit::users_work(&scene.repo(), before, 2).unwrap();
    audit::reachable(&scene.repo(), TOKENS).unwrap();
    // Serial: the base, then one landing on top of the other.
    let line = scene.git(&["rev-list", "--first-parent", "main"]);
    assert_eq!(line.lines().count(), 3, "{line}");
    let files = scene.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(files.contains("other.txt") && files.contains("docs/new.md"), "{files}");
}

/// M-N1: two runs at once on one repository and one target.
#[test]
fn m_n1_two_runs_land_one_after_the_other() {
    for _ in 0..3 {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        let (one, other) = (scene.run_args(), other_args(&scene));
        let commands = [one, other].map(|args| scene.command(&as_strs(&args)));
        let started = commands.map(start);
        for (mut child, said) in started {
            let ended = finish(&mut child, &said);
            assert_eq!(ended.code, Some(0), "{}", ended.said);
        }
        both_landed(&scene, &before);
    }
}

/// M-N1 with a crash: one run dies inside its landing, another lands, then the first is resumed.
#[test]
fn m_n1_m_f15_another_run_lands_between_crash_and_resume() {
    for place in ["merge.built:1", "tests.ran:1", "land.prepared:1", "land.moved:1", "land.committed:1"] {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        assert!(scene.run(Some(place)).killed);
        let first = scene.id();
        let other = other_args(&scene);
        let ended = scene.call(&other.iter().map(String::as_str).collect::<Vec<_>>(), None);
        assert_eq!(ended.code, Some(0), "{place}: {}", ended.said);
        let ended = scene.call(&["resume", &first, "--unattended", "--auto-merge"], None);
        assert_eq!(ended.code, Some(0), "{place}: {}", ended.said);
        both_landed(&scene, &before);
    }
}

/// M-F16, I8: the user commits between the last look at the target and its move. Their commit stays, and what lands
/// is built and tested again on top of it.
#[test]
fn m_f16_a_commit_in_the_last_moment_stays() {
    let scene = Scene::new();
    let before = Users::look(&scene.repo());
    let (args, pause) = (scene.run_args(), scene.base().join("pause"));
    let mut command = scene.command(&as_strs(&args));
    command.env("ARCHEFLOW_FAILPOINT_PAUSE", format!("land.begun={}", pause.display()));
    let (mut child, said) = start(command);
    wait_until(|| pause.exists(), || fs::read_to_string(&said).unwrap());
    let mine = scene.git(&["commit-tree", "-p", "main", "-m", "Mine", "main^{tree}"]).trim().to_owned();
    scene.git(&["update-ref", "-m", "mine", "refs/heads/main", &mine]);
    fs::remove_file(&pause).unwrap();
    let ended = finish(&mut child, &said);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let entries = audit::journal(&scene.journal()).unwrap();
    audit::tested_is_landed(&scene.repo(), &entries).unwrap();
    audit::users_work(&scene.repo(), &before, 2).unwrap();
    assert_eq!(scene.git(&["rev-parse", "main^1"]).trim(), mine, "the user's commit is lost");
    let tested =
        entries.iter().filter(|entry| matches!(entry.event, Event::Report(Report::TestsDone(_)))).count();
    assert_eq!(tested, 2, "what lands on another base is tested again");
}

/// M-N2: who comes second is refused and told who has it.
#[test]
fn m_n2_one_run_has_one_driver() {
    let scene = Scene::new();
    let waits = r#"while [ ! -e "$BASE/go" ]; do sleep 0.05; done"#;
    let args = args_with_agent(&scene, &stages::shell_agent(&scene, waits));
    let (mut child, said) = start(scene.command(&as_strs(&args)));
    let begun = || !scene.ids().is_empty() && fs::metadata(scene.journal()).unwrap().len() > 0;
    wait_until(begun, || fs::read_to_string(&said).unwrap());
    let second = scene.resume(None);
    assert_eq!(second.code, Some(21), "{}", second.said);
    assert!(second.said.contains(&child.id().to_string()), "{}", second.said);
    child.kill().unwrap();
    finish(&mut child, &said);
    fs::write(scene.base().join("go"), "").unwrap();

    let args = ["resume", &scene.id(), "--unattended", "--auto-merge"].map(str::to_owned);
    let command = || scene.command(&as_strs(&args));
    let both = [command(), command()].map(start);
    let mut codes: Vec<_> = both.map(|(mut child, said)| finish(&mut child, &said).code.unwrap()).to_vec();
    codes.sort_unstable();
    assert_eq!(codes, [0, 21]);
    audit::ends(&audit::journal(&scene.journal()).unwrap(), 1).unwrap();
}

/// M-E14: a lock that our own dead git left in the user's repository is cleared, however late the run is resumed.
#[test]
fn m_e14_the_lock_of_our_dead_git_is_cleared() {
    for (place, lock) in [("land.prepared:1", "index.lock"), ("land.moved:1", "refs/heads/main.lock")] {
        let scene = Scene::new();
        let before = Users::look(&scene.repo());
        assert!(scene.run(Some(place)).killed);
        std::thread::sleep(Duration::from_millis(300));
        fs::write(scene.repo().join(".git").join(lock), "").unwrap();
        std::thread::sleep(Duration::from_millis(3_200));
        proof::see_through(&scene, &[]).unwrap();
        proof::check(&scene, &before, golden()).unwrap();
    }
}

/// A lock from before the landing is somebody else's and stays.
#[test]
fn m_e14_the_lock_of_another_process_is_kept() {
    let scene = Scene::new();
    assert!(scene.run(Some("recorded:2")).killed);
    let lock = scene.repo().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    std::thread::sleep(Duration::from_millis(3_200));
    let ended = scene.resume(None);
    assert_eq!(ended.code, Some(10), "{}", ended.said);
    assert!(lock.exists(), "somebody else's lock was removed");
}

/// The branch had moved, the program died, and the user went on from there: then it is landed.
#[test]
fn a_landing_the_user_built_on_is_a_landing() {
    let scene = Scene::new();
    assert!(scene.run(Some("land.committed:1")).killed);
    let landed = scene.git(&["rev-parse", "main"]);
    let mine = scene.git(&["commit-tree", "-p", "main", "-m", "Mine", "main^{tree}"]);
    scene.git(&["update-ref", "refs/heads/main", mine.trim()]);
    proof::see_through(&scene, &[]).unwrap();
    let entries = audit::journal(&scene.journal()).unwrap();
    audit::same_decisions(&golden().decisions, &entries).unwrap();
    assert_eq!(scene.git(&["rev-parse", "main^1"]), landed);
    assert_eq!(scene.git(&["rev-parse", "main"]), mine);
}

/// A Maker with nothing left to do in the second cycle: killed anywhere, the run's work is still its work.
#[test]
fn a_maker_that_adds_nothing_is_no_failure_after_a_crash() {
    let stage = || {
        let scene = Scene::new();
        let play = fs::read_to_string(&scene.play).unwrap();
        let (head, rest) = play.split_once("== maker cycle=2 ==").unwrap();
        let (_, tail) = rest.split_once("say <<END").unwrap();
        fs::write(&scene.play, format!("{head}== maker cycle=2 ==\nsay <<END{tail}")).unwrap();
        scene
    };
    let scene = stage();
    assert_eq!(scene.run(None).code, Some(0));
    let golden = audit::decisions(&audit::journal(&scene.journal()).unwrap());
    for place in ["agent.done:9", "work.collected:2", "work.published:2", "performed:9", "performed:10"] {
        let scene = stage();
        assert!(scene.run(Some(place)).killed, "{place}");
        proof::see_through(&scene, &[]).unwrap();
        let entries = audit::journal(&scene.journal()).unwrap();
        audit::same_decisions(&golden, &entries).map_err(|what| format!("{place}: {what}")).unwrap();
    }
}

/// I2: published, killed, and collected again a second later, when the same work makes another commit.
#[test]
fn work_published_twice_is_kept_twice() {
    let scene = Scene::new();
    let before = Users::look(&scene.repo());
    assert!(scene.run(Some("work.published:1")).killed);
    std::thread::sleep(Duration::from_millis(1_100));
    proof::see_through(&scene, &[]).unwrap();
    proof::check(&scene, &before, golden()).unwrap();
}

/// M-A13: killed at the end of a run that stops; its files are made and the index is told when it is next opened.
#[test]
fn m_a13_the_end_of_a_run_is_written_once() {
    let stage = || {
        let scene = Scene::new();
        let play =
            fs::read_to_string(&scene.play).unwrap().replace("== guardian cycle=1 ==", "== guardian ==");
        fs::write(&scene.play, play).unwrap();
        let mut args = scene.run_args();
        let at = args.iter().position(|arg| arg == "standard").unwrap();
        args[at] = "fast".to_owned();
        (scene, args)
    };
    let (scene, args) = stage();
    let args_of = |args: &[String]| args.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let list = args_of(&args);
    let (ended, places) = scene.traced(scene.command(&list.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(ended.code, Some(14), "{}", ended.said);
    let golden = audit::decisions(&audit::journal(&scene.journal()).unwrap());
    let artifacts = audit::artifacts(&scene.repo(), &scene.id());
    for place in ["recorded", "projected", "observed"] {
        let (scene, args) = stage();
        let point = format!("{place}:{}", places[place]);
        let ended = scene.call(&as_strs(&args), Some(&point));
        assert!(ended.killed, "{point}");
        let ended = scene.resume(None);
        assert_eq!(ended.code, Some(2), "{}", ended.said);
        let entries = audit::journal(&scene.journal()).unwrap();
        audit::same_decisions(&golden, &entries).unwrap();
        audit::ends(&entries, 1).unwrap();
        audit::listed(&scene.events(), &scene.id(), "stopped").unwrap();
        audit::same_artifacts(&artifacts, &audit::artifacts(&scene.repo(), &scene.id())).unwrap();
    }
}
