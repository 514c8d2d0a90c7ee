//! Any bytes, read as a text with signal blocks (PJ-20..PJ-23): what must hold of every reading.
#![no_main]

use archeflow_core::strategies::agent_loop::cyclefile;
use archeflow_core::strategies::agent_loop::signal::{RouteMode, Route, answer, read, read_bytes, route, spoken};
use archeflow_core::model::{LoopPolicy, Speaker};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = read_bytes(bytes);
    let text = String::from_utf8_lossy(bytes);
    let reading = read(&text);
    let lines = text.split_inclusive(['\n', '\r']).count() + 1;
    for signal in &reading.signals {
        assert!(signal.first >= 1 && signal.first <= signal.last && signal.last <= lines);
        assert!(signal.deviations.iter().all(|found| (1..=lines).contains(&found.line)));
        let strict = route(signal, RouteMode::Strict);
        if matches!(strict, Route::To(..)) {
            assert_eq!(strict, route(signal, RouteMode::Tolerant));
        }
        // Nobody but a person approves (PC-04).
        if let Route::To(_, Some(token)) = route(signal, RouteMode::Tolerant) {
            assert!(!token.approves() || signal.agent == Some(Speaker::Human));
        }
    }
    let policy = LoopPolicy::default();
    let said = spoken(&text, &policy);
    assert_eq!(
        said.fault.is_empty(),
        reading.last().is_some_and(|last| is_routed(route(last, RouteMode::Tolerant)))
    );
    for by in [Speaker::Planner, Speaker::Actor, Speaker::Judge] {
        let _ = answer(by, bytes, None, &policy);
    }
    // What is appended to a cycle file can't forge or break its marks (PJ-32).
    let empty = cyclefile::parse("").expect("an empty file has no past");
    let file = cyclefile::append("", &empty, Speaker::Actor, &text);
    let past = cyclefile::parse(&file).expect("what we append is whole");
    assert_eq!((past.blocks, past.fresh.as_str()), (1, ""));
});

fn is_routed(route: Route) -> bool {
    matches!(route, Route::To(..))
}
