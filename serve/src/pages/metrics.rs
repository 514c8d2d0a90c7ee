//! Numbers for Prometheus: no names of runs, tasks or repositories.

use std::sync::Arc;

use archeflow_core::model::Money;
use archeflow_core::projections::prometheus::{self, RunCounts};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::server::Ui;

/// What an index says of runs; anything else in that file is counted as `other`.
const STATUSES: [&str; 10] = [
    "running",
    "merged",
    "awaiting_merge",
    "awaiting_answer",
    "stopped",
    "failed",
    "wiggum_break",
    "dry_run",
    "reviewed",
    "discarded",
];

pub(super) async fn page(State(ui): State<Arc<Ui>>) -> Response {
    super::drawn(ui, |ui| {
        super::with_type(StatusCode::OK, prometheus::CONTENT_TYPE, prometheus::runs(&counts(ui)))
    })
    .await
}

fn counts(ui: &Ui) -> RunCounts {
    let overview = ui.catalog.overview();
    let mut counts = RunCounts {
        repositories: overview.repositories.iter().filter(|known| !known.missing).count(),
        waiting: overview.waiting.len(),
        running: overview.running.len(),
        ..RunCounts::default()
    };
    for (_, entry) in &overview.all {
        let status = STATUSES.into_iter().find(|known| *known == entry.status).unwrap_or("other");
        *counts.by_status.entry(status.to_owned()).or_default() += 1;
    }
    let active = overview.waiting.iter().chain(&overview.running);
    counts.spent = active.fold(Money::ZERO, |sum, active| sum.plus(active.run.spent));
    counts
}
