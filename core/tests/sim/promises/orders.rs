//! What the auditor asks of an order to an agent: that it is due, and that its account can pay for it.

use super::*;

impl<'a> Auditor<'a> {
    pub(super) fn sent(&mut self, entry: &'a Entry, start: &'a AgentStart) -> Kept {
        let request = self.request()?;
        let name = start.archetype.as_str();
        holds(self.ground_is_firm(&request.config), "nobody is paid before the base was tried (U-10)")?;
        holds(self.cycle.entered && start.cycle == self.cycle.number, "an agent works in the present cycle")?;
        holds(start.cycle <= self.max_cycles, "cycles never exceed their number")?;
        holds(self.cycle.boundary.is_none(), "after a boundary nobody works in that cycle")?;
        holds(!self.wish, "a wish to land is not answered with more work")?;
        holds(self.agents_out().all(|out| out.archetype != name), "nobody is sent out twice")?;
        holds(
            start.role == Role::Reviewer || self.agents_out().next().is_none(),
            "only reviewers work side by side",
        )?;
        let known = start.purpose == Purpose::Research
            || self.team().any(|(seat, role)| seat == name && role == start.role);
        holds(known, "only the team works")?;
        let tip = self.work.map_or(&request.base.commit, |work| &work.commit);
        holds(*tip == start.at, "everybody looks at the latest work")?;
        holds(!self.cycle.skipped.contains(name), "who was skipped does not work in that cycle")?;
        let calm = self.cycle.answers.values().all(|answer| asks_nothing(answer));
        holds(calm || start.role == Role::Reviewer, "nobody works past a question or a block")?;
        holds(
            self.alone_and_failing < request.config.retries.failures_in_a_row,
            "failures in a row are a hard break",
        )?;
        self.on_account(entry, request, start)?;
        self.retried(request, start)?;
        match start.role {
            Role::Explorer => {}
            Role::Creator => {
                let explorer = self.team().any(|(_, role)| role == Role::Explorer);
                let spared = self.cycle.skipped.contains("explorer");
                let heard = self.cycle.answers.contains_key("explorer") || spared;
                holds(!explorer || heard, "the Explorer comes first")?;
            }
            Role::Maker => self.maker_sent(request, start)?,
            Role::Gatekeeper => holds(self.made(), "nobody reviews nothing")?,
            Role::Reviewer => {
                let gate = self.review("guardian").is_some() && self.cycle.verdicts.contains_key("guardian");
                holds(gate && self.made(), "no reviewer before the gatekeeper")?;
                holds(!self.pipeline() || self.agents_out().next().is_none(), "the pipeline is one by one")?;
            }
        }
        if let Some(parent) = self.together {
            holds(parent == entry.parent, "agents sent in parallel share one parent")?;
        }
        self.together = Some(&entry.parent);
        self.agents += 1;
        Ok(())
    }

    /// C6: nobody goes to a limited account before it serves again, and then only one.
    fn on_account(&mut self, entry: &'a Entry, request: &'a RunStart, start: &'a AgentStart) -> Kept {
        let (name, account) = (start.archetype.as_str(), start.account.as_str());
        if let Some(limited) = self.limited.get(account) {
            let waited = self.set_back || entry.at + start.wait_ms >= limited.opens;
            holds(waited, "no agent starts into an open breaker (C6)")?;
            let alone = self.agents_out().all(|out| out.account != account);
            holds(alone, "one attempt finds out whether an account serves again (C6)")?;
            let again = limited.again.get(name).copied().unwrap_or(0);
            holds(
                !limited.parked || again < 2,
                "who comes back from a break is turned away twice at most (C6)",
            )?;
            let wait = start.wait_ms <= request.config.retries.park_after_ms;
            holds(wait, "what is too far off is not waited for (C6)")?;
        } else {
            holds(start.wait_ms == 0, "nobody waits for nothing")?;
        }
        if self.account.insert(name, account).is_some_and(|before| before != account) {
            self.cycle.busy.remove(name);
            self.cycle.failures.remove(name);
        }
        Ok(())
    }

    pub(super) fn team(&self) -> impl Iterator<Item = (&'static str, Role)> + use<> {
        let seats = match (self.pipeline(), self.workflow) {
            (true, _) => pipeline_team(),
            (false, workflow) => team(workflow.unwrap_or(Workflow::Standard)),
        };
        const NAMES: [&str; 7] = ["explorer", "creator", "maker", "guardian", "skeptic", "sage", "trickster"];
        seats
            .into_iter()
            .map(|seat| (NAMES.into_iter().find(|name| *name == seat.archetype).unwrap(), seat.role))
    }

    fn retried(&mut self, request: &'a RunStart, start: &'a AgentStart) -> Kept {
        let retries = &request.config.retries;
        let name = start.archetype.as_str();
        let count = |tally: &BTreeMap<&str, u32>| tally.get(name).copied().unwrap_or(0);
        let (failures, busy) = (count(&self.cycle.failures), count(&self.cycle.busy));
        holds(failures <= retries.attempts, "at most so many failures of a seat")?;
        holds(
            busy as usize <= retries.busy_waits_ms.len(),
            "a busy agent is tried so many times and no more",
        )?;
        if start.purpose == Purpose::Research {
            return holds(failures == 0, "a failed mini-Explorer is gone without");
        }
        let again = self.cycle.last_failure.get(name);
        holds(again.is_some() == (start.purpose == Purpose::Retry), "a retry follows a failure")?;
        let cramped = self.cycle.cramped.get(name).copied().unwrap_or(0);
        holds(cramped <= 1, "a brief is shortened once (M-G5)")?;
        let another = |kind: &Failure| {
            matches!(kind, Failure::Garbled | Failure::ContextTooLong)
                || kind.is_busy()
                || (!request.config.agents.fallback.is_empty()
                    && matches!(kind, Failure::Auth | Failure::NotStarted))
        };
        let gone_without = start.role == Role::Reviewer && again.is_some_and(|kind| !another(kind));
        holds(!gone_without, "a reviewer that failed is gone without")?;
        let errand = self.cycle.errand.map_or("", |errand| errand.note.as_str());
        holds(
            start.role != Role::Maker || start.note.contains(errand),
            "a retried errand still says what it is for",
        )
    }

    fn maker_sent(&mut self, request: &'a RunStart, start: &'a AgentStart) -> Kept {
        let proposal = self.proposal().ok_or("the Maker never starts before a proposal")?;
        let understood =
            proposal.confidence.task_understanding.unwrap_or(0) >= request.config.confidence_floor.0;
        holds(
            understood || self.waved || self.cycle.imported,
            "A3: the Maker never starts on a misunderstood task",
        )?;
        holds(!request.dry_run || self.dry_run_passed, "a dry run builds nothing")?;
        // A correction may fail and be tried again after that; it is another errand.
        let retried = start.purpose == Purpose::Retry && self.cycle.errand.is_some();
        let once_more = self.cycle.no_tests_came && (retried || start.purpose == Purpose::Tests);
        holds(!once_more, "the Maker is asked for tests once (AF-063)")?;
        let objections = self.objections();
        let cycle = &mut self.cycle;
        match start.purpose {
            Purpose::Tests => {
                cycle.for_tests += 1;
                cycle.errand = Some(start);
                holds(cycle.for_tests == 1, "at most one Maker run for tests in a cycle")?;
                let untested =
                    self.work.is_some_and(|work| work.test_files == 0) && proposal.has_test_strategy;
                holds(
                    untested && request.domain != Domain::Writing,
                    "tests are asked for only where they are due",
                )
            }
            Purpose::Fix => {
                cycle.for_fix += 1;
                cycle.errand = Some(start);
                cycle.no_tests_came = false;
                holds(request.strategy == Strategy::Pipeline, "targeted fixes are the pipeline's")?;
                holds(cycle.for_fix == 1, "exactly one targeted fix")?;
                let (before, rejected_before) = objections;
                cycle.unsure_before = cycle.unsure(&Aside::default());
                (cycle.before, cycle.rejected_before) = (before, rejected_before);
                cycle.aside_before = cycle.all_set_aside();
                cycle.aside = Aside::default();
                cycle.kept.clear();
                cycle.asked_about.clear();
                cycle.answers.retain(|_, answer| !matches!(answer.said, AnswerBody::Review(_)));
                cycle.evidence_asked.clear();
                cycle.overruled.clear();
                cycle.upheld.clear();
                cycle.weakened.clear();
                cycle.verdicts.clear();
                cycle.downgraded.clear();
                cycle.skipped.clear();
                cycle.failures.clear();
                cycle.busy.clear();
                cycle.last_failure.clear();
                cycle.raised.clear();
                self.boundaries.remove(&start.cycle);
                self.landing = Landing { requested: self.landing.requested, ..Landing::default() };
                Ok(())
            }
            Purpose::Work => holds(!cycle.answers.contains_key("maker"), "the Maker does its work once"),
            Purpose::Correct | Purpose::Replace | Purpose::Retry | Purpose::Research => Ok(()),
        }
    }
}
