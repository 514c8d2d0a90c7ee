//! A fleet as processes: a real message server, workers that are this program, and bare repositories that they push to. The
//! tests give the orders themselves, as a conductor would.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "fleet/evaluation.rs"]
mod evaluation;
#[path = "fleet/faults.rs"]
mod faults;
#[path = "../../fleet/tests/common/program.rs"]
mod program;
#[path = "fleet/proxy.rs"]
mod proxy;
#[path = "../../fleet/tests/common/settings.rs"]
mod settings;
#[path = "fleet/sprint.rs"]
mod sprint;
#[path = "harness/user.rs"]
#[expect(dead_code, reason = "what the other end-to-end tests need is in it as well")]
mod user;
#[path = "fleet/walkthrough.rs"]
mod walkthrough;
#[path = "fleet/worker.rs"]
mod worker;
#[path = "fleet/world.rs"]
mod world;
