//! The rules of the Human/Planner/Actor/Judge loop: how far a step may go, the result of the Judge's checks, when a
//! person is asked, what is reported. Their tables are in `docs/rules/loop.md`.

pub mod battery;
pub mod commands;
pub mod diet;
pub mod fewer;
pub mod goal;
pub mod leaks;
pub mod limits;
pub mod metrics;
pub mod recovery;
pub mod risk;
pub mod states;
pub mod turn;
