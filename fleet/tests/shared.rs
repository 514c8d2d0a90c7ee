//! What a fleet shares: members, approvals, budgets and accounts. Against a real `nats-server`, and in memory with lost answers.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "shared/memory.rs"]
mod memory;
#[path = "common/program.rs"]
mod program;
#[path = "common/settings.rs"]
mod settings;
#[path = "shared/world.rs"]
mod world;

use std::time::Instant;

use archeflow_core::model::Money;
use archeflow_fleet::accounts::{Accounts, Gate, ShutAccount, TRIAL_MS};
use archeflow_fleet::approvals::{approve, find, revoke};
use archeflow_fleet::bus::{Bus, BusError, Expect, Kept, Put};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::keys::{FleetKey, SignedAs};
use archeflow_fleet::ledger::{Ledger, LedgerState, Reserved};
use archeflow_fleet::members::{self, MembersFault};
use archeflow_fleet::names;
use archeflow_fleet::server::{FleetFolder, ServerFault};
use serde_json::json;

use memory::MemoryBus;
use world::{LONG, World};

const DIGEST: &str = "d1";

fn put(bus: &dyn Bus, subject: &str, bytes: &[u8], signature: Option<&str>) -> Result<(), BusError> {
    let headers: Vec<(&str, &str)> =
        signature.into_iter().map(|signature| (names::SIGNATURE, signature)).collect();
    bus.put(Put { subject, expect: Expect::Anything, id: None, headers: &headers, bytes }).map(drop)
}

/// Keeps bytes of a worker's choice where it may, to be copied from there.
fn prepared(world: &World, bytes: &[u8], signature: Option<&str>) -> Kept {
    let (bus, subject) = (world.bus("w1"), "af1.j.run.prepared");
    put(&bus, subject, bytes, signature).unwrap();
    bus.last(subject).unwrap().unwrap()
}

fn approval(by: &str, digest: &str, at: u64) -> Vec<u8> {
    let said = json!({"v": 1, "repository": "shop", "digest": digest, "by": by, "at": at, "revoked": false});
    said.to_string().into_bytes()
}

fn names_of(list: &[members::ListedMember]) -> Vec<&str> {
    list.iter().map(|member| member.name.as_str()).collect()
}

#[test]
fn fl_91_a_person_approves_for_all_workers_and_takes_it_back() {
    let world = World::new();
    let (jo, kim, worker) = (world.bus("jo"), world.bus("kim"), world.bus("w1"));
    let (jo_join, kim_join, worker_join) = (world.join("jo"), world.join("kim"), world.join("w1"));
    let found = |repository: &str, digest: &str| find(&worker, &worker_join, repository, digest).unwrap();
    assert_eq!(found("shop", DIGEST), None);
    let first = approve(&jo, &jo_join, "shop", DIGEST).unwrap();
    assert_eq!((first.by.as_str(), Some(&first)), ("jo", found("shop", DIGEST).as_ref()));
    assert_eq!(found("shop", "d2"), None);
    assert_eq!(found("shop2", DIGEST), None);
    // Anybody takes it back, however the clocks are.
    assert_eq!(revoke(&kim, &kim_join, "shop", DIGEST).unwrap(), Some(first));
    assert_eq!(found("shop", DIGEST), None);
    assert_eq!(revoke(&jo, &jo_join, "shop", DIGEST).unwrap(), None);
    let second = approve(&kim, &kim_join, "shop", DIGEST).unwrap();
    assert_eq!(found("shop", DIGEST), Some(second));

    for (name, join) in [("w1", &worker_join), ("boss", &world.join("boss"))] {
        let error = approve(&world.bus(name), join, "shop", "d3").unwrap_err();
        assert!(error.to_string().contains("only people approve"), "{error}");
    }
    let older = JoinFile { fleet: None, ..worker_join.clone() };
    let error = find(&worker, &older, "shop", DIGEST).unwrap_err().to_string();
    assert!(error.contains("w1.join") && error.contains("archeflow fleet add worker w1"), "{error}");
    let other = JoinFile { fleet: Some(FleetKey::generate().unwrap().public()), ..worker_join.clone() };
    let error = find(&worker, &other, "shop", DIGEST).unwrap_err().to_string();
    assert!(error.contains("no list of members"), "{error}");
}

/// A worker makes messages appear where only people may write; none of them counts.
#[test]
fn fl_92_what_a_worker_makes_appear_approves_nothing() {
    let world = World::new();
    let (jo, jo_join) = (world.bus("jo"), world.join("jo"));
    let (worker, worker_join) = (world.bus("w1"), world.join("w1"));
    let nobody = |digest: &str, why: &str| {
        for name in ["w1", "boss", "jo"] {
            let found = find(&world.bus(name), &world.join(name), "shop", digest).unwrap();
            assert_eq!(found, None, "{why}, for {name}");
        }
    };
    let subject = |digest: &str| names::approval("jo", "shop", digest);
    let now = archeflow_host::clock::now();
    assert!(matches!(put(&worker, &subject("d0"), b"x", None), Err(BusError::Denied(_))));

    // In the name of a person: unsigned, signed by the worker, signed for another purpose.
    let bytes = approval("jo", "d0", now);
    let by_worker = worker_join.key.sign_for(SignedAs::Approval, &bytes).unwrap();
    let as_login = jo_join.key.sign_for(SignedAs::Members, &bytes).unwrap();
    for signature in [None, Some("nonsense"), Some(by_worker.as_str()), Some(as_login.as_str())] {
        world.make_appear(&prepared(&world, &bytes, signature), names::JOURNALS, &subject("d0"));
        nobody("d0", "a signature by a worker");
    }
    // In its own name, under a person's subject and its own.
    let bytes = approval("w1", "d0", now);
    let signature = worker_join.key.sign_for(SignedAs::Approval, &bytes).unwrap();
    let own = prepared(&world, &bytes, Some(&signature));
    for who in ["jo", "w1"] {
        world.make_appear(&own, names::JOURNALS, &names::approval(who, "shop", "d0"));
        nobody("d0", "a worker's own approval");
    }

    // Copied: to another digest, to another repository.
    approve(&jo, &jo_join, "shop", DIGEST).unwrap();
    let genuine = jo.last(&subject(DIGEST)).unwrap().unwrap();
    world.make_appear(&genuine, names::SUBMITTED, &subject("d2"));
    nobody("d2", "a copy for another digest");
    world.make_appear(&genuine, names::SUBMITTED, &names::approval("jo", "bank", DIGEST));
    assert_eq!(find(&worker, &worker_join, "bank", DIGEST).unwrap(), None, "a copy for another repository");
    // With a byte changed.
    let text = String::from_utf8(genuine.bytes.clone()).unwrap();
    let changed = text.replace("\"d1\"", "\"d3\"");
    assert_ne!(text, changed);
    let changed = prepared(&world, changed.as_bytes(), genuine.header(names::SIGNATURE));
    world.make_appear(&changed, names::JOURNALS, &subject("d3"));
    nobody("d3", "a changed byte");

    // Revoked, and the approval put on top again.
    assert!(find(&worker, &worker_join, "shop", DIGEST).unwrap().is_some());
    revoke(&jo, &jo_join, "shop", DIGEST).unwrap();
    let copy = world.make_appear(&genuine, names::SUBMITTED, &subject(DIGEST));
    assert_eq!(copy.header(names::SIGNATURE), genuine.header(names::SIGNATURE), "the copy is genuine");
    nobody(DIGEST, "a revoked approval");

    // Too old, or from the future.
    for (digest, at) in [("d5", now - 301 * 86_400_000), ("d6", now + 3 * 86_400_000)] {
        let bytes = approval("jo", digest, at);
        let signature = jo_join.key.sign_for(SignedAs::Approval, &bytes).unwrap();
        put(&jo, &subject(digest), &bytes, Some(&signature)).unwrap();
        nobody(digest, "an approval of another time");
    }
}

#[test]
fn fl_93_approvals_of_a_removed_person_count_no_more() {
    let world = World::new();
    let (kim, kim_join) = (world.bus("kim"), world.join("kim"));
    let (worker, worker_join) = (world.bus("w1"), world.join("w1"));
    approve(&kim, &kim_join, "shop", DIGEST).unwrap();
    assert!(find(&worker, &worker_join, "shop", DIGEST).unwrap().is_some());
    let listed = kim.last(names::MEMBERS).unwrap().unwrap();
    drop(kim);
    world.fleet.remove("kim").unwrap();
    assert_eq!(find(&worker, &worker_join, "shop", DIGEST).unwrap(), None);
    // Another person of that name has another key.
    world.fleet.add(FleetRole::Person, "kim", None).unwrap();
    assert!(world.fleet.reload());
    assert_eq!(find(&worker, &worker_join, "shop", DIGEST).unwrap(), None);
    // The list with the one who was removed, put on top again.
    world.make_appear(&listed, names::TRUST, names::MEMBERS);
    assert_eq!(find(&worker, &worker_join, "shop", DIGEST).unwrap(), None);
    // Nonsense instead of a list.
    world.make_appear(&prepared(&world, b"{}", None), names::JOURNALS, names::MEMBERS);
    assert_eq!(find(&worker, &worker_join, "shop", DIGEST).unwrap(), None);
    // As the only list that is left, it is refused by those who have seen a later one.
    let memory = MemoryBus::default();
    put(&memory, names::MEMBERS, &listed.bytes, listed.header(names::SIGNATURE)).unwrap();
    let error = find(&memory, &worker_join, "shop", DIGEST).unwrap_err().to_string();
    assert!(error.contains("older than one") && error.contains("archeflow fleet serve"), "{error}");
}

#[test]
fn fl_94_the_list_of_members_is_signed_and_follows_every_change() {
    let mut world = World::new();
    let worker_join = world.join("w1");
    let listed = |world: &World| members::read(&world.bus("w1"), &worker_join).unwrap();
    assert_eq!(names_of(&listed(&world)), ["serve", "boss", "w1", "jo", "kim"]);
    world.fleet.add(FleetRole::Worker, "w9", None).unwrap();
    assert!(names_of(&listed(&world)).contains(&"w9"), "added while the server runs");
    let jo = listed(&world).into_iter().find(|member| member.name == "jo").unwrap();
    assert_eq!((jo.role, jo.public), (FleetRole::Person, world.join("jo").key.public()));

    // Changed and wiped while no server runs.
    world.kill();
    world.wipe();
    world.fleet.remove("w9").unwrap();
    world.start();
    assert_eq!(names_of(&listed(&world)), ["serve", "boss", "w1", "jo", "kim"]);

    // `fleet serve` may write that list and nothing else there.
    let serve = world.bus("serve");
    put(&serve, names::MEMBERS, b"x", None).unwrap();
    for subject in ["$KV.AF_TRUST.other", "$KV.AF_LEDGER.all", "af1.a.serve.shop.d1"] {
        assert!(matches!(put(&serve, subject, b"x", None), Err(BusError::Denied(_))), "{subject}");
    }

    // The key: for its owner only, never replaced, made where there is none.
    let (path, folder) = (world.fleet.path().join("fleet.key"), world.fleet.path().to_owned());
    let mode = |path: &std::path::Path| {
        archeflow_host::platform::files::mode(&std::fs::metadata(path).unwrap()) & 0o777
    };
    assert_eq!(mode(&path), 0o600);
    let key = members::fleet_key(&folder).unwrap();
    assert_eq!(worker_join.fleet, Some(key.public()));
    let settings = world.fleet.settings().unwrap();
    FleetFolder::init(&folder, &settings).unwrap();
    assert_eq!(members::fleet_key(&folder).unwrap().public(), key.public());
    for file in ["server.conf", "fleet.json", "members.json", "w1.join"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(!text.contains(&key.seed().unwrap()), "{file}");
    }
    archeflow_host::platform::files::set_mode(&path, 0o640).unwrap();
    let error = world.fleet.add(FleetRole::Worker, "w8", None).unwrap_err();
    assert!(error.to_string().contains("fleet.key") && error.remedy().contains("chmod 600"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = world.fleet.add(FleetRole::Worker, "w8", None).unwrap_err();
    assert!(matches!(error, ServerFault::Members(MembersFault::NoKey { .. })), "{error}");
    assert!(error.remedy().contains("archeflow fleet init"), "{}", error.remedy());
    FleetFolder::init(&folder, &settings).unwrap();
    assert_ne!(members::fleet_key(&folder).unwrap().public(), key.public());
    assert_eq!(mode(&path), 0o600);
}

fn usd(dollars: u64) -> Money {
    Money(dollars * Money::DOLLAR.0)
}

fn held(state: &LedgerState) -> Money {
    state.held.values().copied().sum()
}

/// Asks again after an error that says nothing, as conductors do.
fn insist<T>(mut ask: impl FnMut() -> Result<T, BusError>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(end) => return end,
            Err(BusError::NoAnswer(why)) => assert!(begun.elapsed() < LONG, "no answer: {why}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn fl_95_a_ledger_counts_each_run_once_while_answers_are_lost() {
    for seed in 1..=2 {
        let bus = MemoryBus::losing(seed, 20);
        let ledger = Ledger::new(&bus, "team a");
        let error = loop {
            match ledger.reserve("r0", usd(1)) {
                Err(BusError::NoAnswer(_)) => {}
                end => break end.unwrap_err().to_string(),
            }
        };
        assert!(error.contains("no budget 'team a'") && error.contains("archeflow fleet budget"), "{error}");
        insist(|| ledger.set_cap(Some(usd(1_000))));
        let read = || insist(|| ledger.read()).unwrap();
        // More than are listed: the first are moved.
        for n in 0..350 {
            let run = format!("r{n}");
            assert_eq!(insist(|| ledger.reserve(&run, usd(5))), Reserved::Held);
            assert_eq!(insist(|| ledger.reserve(&run, usd(5))), Reserved::Held);
            assert_eq!(held(&read()), usd(5));
            insist(|| ledger.settle(&run, usd(2)));
            insist(|| ledger.settle(&run, usd(2)));
        }
        assert_eq!((read().spent, held(&read())), (usd(700), Money::ZERO));
        for n in (0..350).step_by(10) {
            insist(|| ledger.settle(&format!("r{n}"), usd(2)));
        }
        assert_eq!(read().spent, usd(700), "settled again, long after");
        // Resumed: it reports its whole cost. A report from before comes late.
        for run in ["r0", "r349"] {
            assert_eq!(insist(|| ledger.reserve(run, usd(3))), Reserved::Held);
            insist(|| ledger.settle(run, usd(4)));
            insist(|| ledger.settle(run, usd(2)));
        }
        assert_eq!((read().spent, held(&read())), (usd(704), Money::ZERO));
        assert_eq!(insist(|| ledger.reserve("big", usd(297))), Reserved::Short { free: usd(296) });
        assert_eq!(insist(|| ledger.reserve("fits", usd(296))), Reserved::Held);
        assert_eq!(insist(|| ledger.reserve("none", Money(1))), Reserved::Short { free: Money::ZERO });
        insist(|| ledger.set_cap(None));
        assert_eq!(insist(|| ledger.reserve("big", usd(1_000_000))), Reserved::Held);
        assert_eq!(read().free(), None);
        // Spent without being reserved, and more than there is.
        insist(|| ledger.set_cap(Some(usd(10))));
        insist(|| ledger.settle("other", usd(50)));
        assert_eq!((read().spent, read().free()), (usd(754), Some(Money::ZERO)));
        // It stays small.
        let bytes = insist(|| bus.last(&names::ledger("team a"))).unwrap().bytes;
        assert!(bytes.len() < 10_000, "{} bytes", bytes.len());
        bus.lose_no_more();
        let all = Ledger::all(&bus).unwrap();
        assert_eq!(all, [read()], "keys of runs are no ledgers");
    }
}

#[test]
fn fl_96_a_ledger_that_cannot_be_read_is_neither_guessed_nor_overwritten() {
    let bus = MemoryBus::default();
    let ledger = Ledger::new(&bus, "all");
    for (text, said) in
        [("nonsense", "can't be read"), ("{\"v\":2}", "format 2"), ("{\"v\":1}", "can't be read")]
    {
        put(&bus, &names::ledger("all"), text.as_bytes(), None).unwrap();
        let before = bus.messages();
        for end in [
            ledger.reserve("r1", usd(1)).map(drop),
            ledger.settle("r1", usd(1)),
            ledger.set_cap(None),
            ledger.read().map(drop),
        ] {
            let error = end.unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("$KV.AF_LEDGER.all"), "{error}");
        }
        assert_eq!(bus.messages(), before);
    }
}

#[test]
fn fl_97_many_reserve_from_one_budget_and_never_more_than_it_has() {
    let mut world = World::new();
    let buses = [world.bus("boss"), world.bus("boss")];
    let ledger = |bus: usize| Ledger::new(&buses[bus], "all");
    ledger(0).set_cap(Some(usd(100))).unwrap();
    // 50 want 7 each: 14 fit. Each asks twice, and half of them settle less and leave room for more.
    let ends: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|n| {
                let ledger = ledger(n % 2);
                scope.spawn(move || {
                    let run = format!("run-{n}");
                    let first = ledger.reserve(&run, usd(7)).unwrap();
                    let state = ledger.read().unwrap().unwrap();
                    assert!(state.spent.plus(held(&state)) <= usd(100), "{state:?}");
                    if first != Reserved::Held {
                        return false;
                    }
                    assert_eq!(ledger.reserve(&run, usd(7)).unwrap(), Reserved::Held);
                    if n % 4 < 2 {
                        ledger.settle(&run, usd(3)).unwrap();
                        ledger.settle(&run, usd(3)).unwrap();
                    }
                    true
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let got: Vec<usize> = (0..50).filter(|n| ends[*n]).collect();
    let settled = got.iter().filter(|n| *n % 4 < 2).count() as u64;
    let state = ledger(1).read().unwrap().unwrap();
    assert_eq!(state.spent, usd(3 * settled));
    assert_eq!(held(&state), usd(7 * (got.len() as u64 - settled)));
    assert!(state.spent.plus(held(&state)) <= usd(100) && got.len() >= 14, "{state:?}");

    // What was acknowledged survives a power cut.
    world.kill();
    world.start();
    assert_eq!(insist(|| ledger(0).read()).unwrap(), state);

    // A server that has lost everything has no budget, rather than an unlimited one. Settling again gives the true sum.
    world.kill();
    world.wipe();
    world.start();
    let lost = insist(|| match ledger(0).reserve("next", usd(1)) {
        Err(BusError::Wrong(why)) => Ok(why),
        Err(error) => Err(error),
        Ok(end) => panic!("{end:?} from a budget that is gone"),
    });
    assert!(lost.contains("its data was lost"), "{lost}");
    for run in got.iter().filter(|n| *n % 4 < 2) {
        insist(|| ledger(0).settle(&format!("run-{run}"), usd(3)));
    }
    assert_eq!(ledger(0).reserve("next", usd(1)).unwrap(), Reserved::Short { free: Money::ZERO });
    ledger(0).set_cap(Some(usd(100))).unwrap();
    for run in got.iter().filter(|n| *n % 4 >= 2) {
        assert_eq!(ledger(1).reserve(&format!("run-{run}"), usd(7)).unwrap(), Reserved::Held);
    }
    let again = ledger(1).read().unwrap().unwrap();
    assert_eq!((again.spent, &again.held, again.cap), (state.spent, &state.held, state.cap));
}

#[test]
fn fl_98_an_account_is_shut_until_the_latest_time_and_tried_by_one() {
    for seed in 1..=20 {
        let bus = MemoryBus::losing(seed, 20);
        let accounts = Accounts::new(&bus);
        let gate = |run: &str, now: u64| insist(|| accounts.may_begin("team.a", run, now));
        bus.set_now(1_000);
        assert_eq!(gate("r1", 1_000), Gate::Open);
        insist(|| accounts.turned_away("team.a", 5_000));
        insist(|| accounts.turned_away("team.a", 9_000));
        insist(|| accounts.turned_away("team.a", 7_000));
        assert_eq!(gate("r1", 8_999), Gate::Shut { until: 9_000 });
        assert_eq!(insist(|| accounts.may_begin("team.b", "r1", 8_000)), Gate::Open);
        bus.set_now(9_500);
        assert_eq!(gate("r1", 9_500), Gate::Trial);
        assert_eq!(gate("r1", 9_600), Gate::Trial);
        assert_eq!(gate("r2", 9_600), Gate::Shut { until: 9_500 + TRIAL_MS });
        let shut = ShutAccount { account: "team.a".to_owned(), until: 9_000, trial: Some("r1".to_owned()) };
        assert_eq!(insist(|| accounts.all()).0, [shut]);
        // One that was served before it was shut shows nothing; a late report of a time that has passed neither.
        insist(|| accounts.served("team.a", "r0"));
        insist(|| accounts.turned_away("team.a", 8_000));
        assert_eq!(gate("r2", 9_700), Gate::Shut { until: 9_500 + TRIAL_MS });
        // The trial is turned away as well.
        insist(|| accounts.turned_away("team.a", 20_000));
        assert_eq!(gate("r1", 10_000), Gate::Shut { until: 20_000 });
        bus.set_now(20_000);
        assert_eq!(gate("r2", 20_000), Gate::Trial);
        insist(|| accounts.served("team.a", "r1"));
        assert_eq!(gate("r1", 20_001), Gate::Shut { until: 20_000 + TRIAL_MS });
        insist(|| accounts.served("team.a", "r2"));
        insist(|| accounts.served("team.a", "r2"));
        assert_eq!(gate("r1", 20_002), Gate::Open);
        assert_eq!(insist(|| accounts.all()).0, []);
        // And shut again.
        insist(|| accounts.turned_away("team.a", 30_000));
        assert_eq!(gate("r1", 20_003), Gate::Shut { until: 30_000 });
    }
}

/// Every worker can write there.
#[test]
fn r_13_garbage_under_one_account_hides_no_other() {
    let bus = MemoryBus::losing(1, 0);
    let accounts = Accounts::new(&bus);
    accounts.turned_away("team.a", 5_000).unwrap();
    for (account, bytes) in [("x", &b"garbage"[..]), ("y", b"{\"v\":99}"), ("z", b"{\"v\":1}")] {
        put(&bus, &names::account(account), bytes, None).unwrap();
    }
    accounts.turned_away("team.b", 6_000).unwrap();
    let (shut, unreadable) = accounts.all().unwrap();
    let names: Vec<&str> = shut.iter().map(|shut| shut.account.as_str()).collect();
    assert_eq!(names, ["team.a", "team.b"]);
    assert_eq!(unreadable.len(), 3, "{unreadable:?}");
    assert!(unreadable[0].contains("$KV.AF_ACCOUNT.x on the server can't be read"), "{unreadable:?}");
    assert!(unreadable[1].contains("has format 99"), "{unreadable:?}");
}

#[test]
fn fl_99_one_of_many_gets_the_trial_and_loses_it_when_it_dies() {
    let world = World::new();
    // The conductor's and a worker's keys may both write it.
    let buses = [world.bus("boss"), world.bus("w1")];
    let accounts = |bus: usize| Accounts::new(&buses[bus]);
    let contend = |now: u64, first: usize| -> Vec<String> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (first..first + 20)
                .map(|n| {
                    let accounts = accounts(n % 2);
                    scope.spawn(move || {
                        let run = format!("run-{n}");
                        let gate = accounts.may_begin("team", &run, now).unwrap();
                        assert_ne!(gate, Gate::Open);
                        (gate == Gate::Trial).then_some(run)
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        })
    };
    let now = archeflow_host::clock::now();
    accounts(0).turned_away("team", now - 1).unwrap();
    let winners = contend(now, 0);
    assert_eq!(winners.len(), 1, "{winners:?}");
    // By the server's clock, which is this machine's.
    let begun = buses[0].last(&names::account("team")).unwrap().unwrap().at;
    assert!(begun >= now, "{begun} {now}");
    assert_eq!(contend(begun + TRIAL_MS - 1, 20), Vec::<String>::new());
    let next = contend(begun + TRIAL_MS, 40);
    assert_eq!(next.len(), 1, "{next:?}");
    // The one that was thought dead comes back.
    accounts(1).served("team", &winners[0]).unwrap();
    assert_eq!(accounts(1).all().unwrap().0[0].trial.as_ref(), Some(&next[0]));
    accounts(1).served("team", &next[0]).unwrap();
    assert_eq!(accounts(0).may_begin("team", "run-1", now).unwrap(), Gate::Open);
    assert_eq!(accounts(0).all().unwrap(), (Vec::new(), Vec::new()));
}
