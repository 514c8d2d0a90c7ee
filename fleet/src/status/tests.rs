#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::json;

use super::*;
use crate::message::Held;

const NOW: u64 = 1_800_000_000_000;

fn beat(worker: &str, at: u64) -> Heartbeat {
    Heartbeat {
        v: 1,
        worker: worker.to_owned(),
        version: "0.4.0".to_owned(),
        slots: 6,
        draining: worker == "w2",
        offers: ["agent:claude", "os:linux"].map(str::to_owned).into(),
        holds: vec![Held { sprint: "s1".to_owned(), seq: 12 }],
        free_bytes: 120_000_000_000,
        done: match worker {
            "w1" => WorkerCounts { orders: 41, taken_over: 1, steps_repeated: 2 },
            _ => WorkerCounts::default(),
        },
        at,
    }
}

fn example() -> FleetStatus {
    let workers =
        vec![worker(beat("w1", NOW - 3_000), NOW - 3_000), worker(beat("w2", NOW - 95_000), NOW - 5_000)];
    let queue = |subject: &str, waiting: u64| json!({"config": {"filter_subject": subject}, "num_pending": waiting, "num_ack_pending": 2});
    let classes = [queue("af1.o.any", 0), queue("af1.o.agent=3aclaude+label=3agpu", 7), queue("af1.r.s1", 1)];
    let info = json!({
        "config": {"max_bytes": 3_000_000_000_u64, "num_replicas": 3},
        "state": {"messages": 1_200, "bytes": 45_000_000},
        "cluster": {"replicas": [{"name": "archeflow-2", "lag": 4, "current": true}, {"name": "archeflow-3", "current": true, "offline": true}]},
    });
    let sprint = |name: &str, ended: bool| SprintStatus {
        sprint: name.to_owned(),
        last_line_at: NOW - 600_000,
        ended,
    };
    FleetStatus {
        at: NOW,
        server: "2.15.1".to_owned(),
        classes: classes.iter().filter_map(|queue| class(queue, &workers)).collect(),
        workers,
        silent: vec!["w3".to_owned()],
        oldest_order_at: Some(NOW - 42_500),
        streams: vec![stream("AF_JOURNAL", &info)],
        budgets: vec![BudgetStatus {
            name: "team".to_owned(),
            cap_usd: Some(Money(100_000_000)),
            spent_usd: Money(12_500_000),
            held_usd: Money(4_500_000),
            held_by: [("s1.shop.1".to_owned(), Money(4_500_000))].into(),
        }],
        accounts: vec![AccountStatus {
            account: "team-a".to_owned(),
            until: NOW + 240_000,
            trial: Some("s1.shop.1".to_owned()),
        }],
        unreadable_accounts: vec!["$KV.AF_ACCOUNT.x on the server can't be read".to_owned()],
        sprints: vec![sprint("2026-11-18-fleet", false), sprint("2026-11-17-fleet", true)],
    }
}

#[test]
fn fl_83_status_is_readable() {
    let expected = "\
Server: nats-server 2.15.1, 3 copies of each stream

Worker  version  busy  heard  free disk
w1      0.4.0    1/6   3 s    120 GB     1 run taken over, 2 steps repeated
w2      0.4.0    1/6   5 s    120 GB     draining, its clock is 90 s behind
w3                                       not heard

Class                   waiting  leased  workers
any                     0        2       1
agent:claude label:gpu  7        2       0        no worker satisfies this

Sprint            last line
2026-11-18-fleet  10 min
2026-11-17-fleet  10 min     ended

Budget  cap      spent   reserved
team    $100.00  $12.50  $4.50

Account shut  opens
team-a        in 4 min  s1.shop.1 tries

warning: an account is skipped: $KV.AF_ACCOUNT.x on the server can't be read

Stream      used             messages
AF_JOURNAL  45 MB of 3.0 GB  1200      archeflow-2 lags 4, archeflow-3 lags 0 (not current)
";
    let found = text(&example());
    assert_eq!(found, expected, "\n{found}");
    let empty = text(&FleetStatus { server: "2.15.1".to_owned(), ..FleetStatus::default() });
    assert_eq!(empty, "Server: nats-server 2.15.1, one copy of each stream\n");
    // What others chose is text and nothing else.
    let mut hostile = example();
    hostile.workers[0].name = "w1\u{1b}[2J\n".to_owned();
    assert!(!text(&hostile).contains('\u{1b}'));
    assert!(!prometheus(&hostile).contains('\u{1b}'));
}

/// The names of metrics, after a check of the format.
fn metrics(text: &str) -> BTreeSet<String> {
    let (mut names, mut current, mut helped) = (BTreeSet::new(), String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split_once(' ').unwrap().0.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let expected = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!((name, kind), (helped.as_str(), expected), "{line}");
            assert!(name.starts_with("archeflow_fleet_"), "{line}");
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            current = name.to_owned();
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            let labels = sample.strip_prefix(&current).unwrap();
            let inner = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix("\"}"));
            assert!(labels.is_empty() || inner.is_some_and(|inner| inner.contains("=\"")), "{line}");
        }
    }
    names
}

#[test]
fn fl_83_prometheus_reads_the_same_numbers() {
    let text = prometheus(&example());
    metrics(&text);
    for line in [
        "archeflow_fleet_workers{state=\"active\"} 1",
        "archeflow_fleet_workers{state=\"draining\"} 1",
        "archeflow_fleet_workers{state=\"silent\"} 1",
        "archeflow_fleet_worker_clock_skew_seconds{worker=\"w2\",version=\"0.4.0\"} -90",
        "archeflow_fleet_worker_orders_total{worker=\"w1\",version=\"0.4.0\"} 41",
        "archeflow_fleet_worker_taken_over_total{worker=\"w1\",version=\"0.4.0\"} 1",
        "archeflow_fleet_worker_steps_repeated_total{worker=\"w1\",version=\"0.4.0\"} 2",
        "archeflow_fleet_orders_waiting{class=\"agent:claude label:gpu\"} 7",
        "archeflow_fleet_class_workers{class=\"any\"} 1",
        "archeflow_fleet_oldest_order_seconds 42.5",
        "archeflow_fleet_stream_bytes{stream=\"AF_JOURNAL\"} 45000000",
        "archeflow_fleet_stream_followers_behind{stream=\"AF_JOURNAL\"} 1",
        "archeflow_fleet_stream_lag{stream=\"AF_JOURNAL\"} 4",
        "archeflow_fleet_budget_reserved_usd{budget=\"team\"} 4.5",
        "archeflow_fleet_account_shut_seconds{account=\"team-a\"} 240",
        "archeflow_fleet_sprint_idle_seconds{sprint=\"2026-11-18-fleet\"} 600",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("2026-11-17-fleet"), "an ended sprint is idle for ever");
    metrics(&prometheus(&FleetStatus::default()));
}

#[test]
fn fl_88_the_page_for_operators_lists_every_metric_and_no_other() {
    let page = include_str!("../../../docs/fleet-operations.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `archeflow_fleet_"));
    let listed: BTreeSet<String> =
        rows.filter_map(|row| row.split('`').next()).map(|name| format!("archeflow_fleet_{name}")).collect();
    assert_eq!(listed, metrics(&prometheus(&example())));
}
