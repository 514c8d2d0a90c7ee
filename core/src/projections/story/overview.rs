//! What the head of a report says of the whole run.

use super::Overview;
use super::Teller;
use crate::projections::view;
use crate::text::branch_name;

impl Teller {
    pub(super) fn overview(&self) -> Overview {
        let run = &self.run;
        let accounts = run.ledger.accounts.values();
        let mut overview = Overview {
            outcome: run.outcome.clone(),
            workflow: run.current_workflow().name(),
            team: run.seats().iter().map(|seat| seat.archetype.clone()).collect(),
            agents: self.agents.clone(),
            models: self.models.clone(),
            began: run.began,
            last: run.last,
            worked_ms: self.worked.values().sum(),
            spent: run.spent,
            limit: run.limits().first().map(|limit| limit.cap),
            unknown_costs: accounts.map(|account| account.unknown).sum(),
            attempts: run.agents_total,
            max_cycles: run.max_cycles,
            fixes: run.fixes_total,
            landed: self.landed.clone(),
            events: run.lines,
            unsandboxed: self.unsandboxed,
            gravest_open: view::gravest_open(run),
            ..Overview::default()
        };
        if let Some(request) = &run.request {
            overview.task = run.task();
            overview.strategy = request.strategy;
            overview.domain = request.domain.name();
            overview.lenses.clone_from(&request.lenses);
            overview.branch.clone_from(&request.branch);
            let target = &request.base.target;
            overview.target = branch_name(target).to_owned();
            overview.base.clone_from(&request.base.commit);
            overview.version.clone_from(&request.version);
        }
        overview
    }
}
