//! `archeflow loop start`.

use archeflow_core::model::Approval;
use archeflow_host::agent_loop::cycle::PATH;
use archeflow_host::agent_loop::open::{Error, LoopRequest, OpenedLoop};
use archeflow_host::config::Flags;
use archeflow_host::open::RunRequest;

use super::drive;
use crate::args::{LoopStart, When};
use crate::commands::open_project;
use crate::commands::run::{notice_choice, pairs};
use crate::commands::session::attended;
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(super) fn run(args: &LoopStart) -> Result<CommandOutput, Failure> {
    let flags = Flags {
        agent: args.agent.clone(),
        agent_for: pairs(&args.agent_for)?,
        test_command: args.test_command.clone(),
        no_tests: args.no_tests.then_some(true),
        budget: args.budget.clone(),
        ..Flags::default()
    };
    let project = open_project(&args.session.place, args.target.as_deref(), true)?;
    let wanted = RunRequest {
        task: args.goal.clone().unwrap_or_default(),
        flags,
        config_file: args.session.place.config.clone(),
        attended: attended(&args.session.session()),
        ..RunRequest::default()
    };
    let approval = args.approval.map(|when| match when {
        When::Step => Approval::EveryPass,
        When::GoalComplete => Approval::GoalComplete,
    });
    let requested = LoopRequest {
        wanted,
        project: args.project.clone(),
        upfront: args.plan_all,
        approval,
        clear: args.clear,
    };
    let OpenedLoop { opened, archived } = project.open_loop(&requested)?;
    if let Some(choice) = &opened.default_agent {
        notice_choice(choice);
    }
    if let Some(kept) = &archived {
        tell!("note: {PATH} was cleared; what stood in it is in {kept}");
    }
    drive(opened.driver, "loop start", &args.session, opened.before, opened.after)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Start(error) => (*error).into(),
            Error::Cycle(error) => super::say::about_file(error),
            Error::Git(_) => Failure::new(30, "git_fault", message, "Check that git works here: git status"),
            Error::Vague { .. } => Failure::usage(
                message,
                "Say what should be different, and for whom or where, e.g. \"Give the discount from 100 euros on\". A \
                 criterion that can be tested helps the Judge.",
            ),
            Error::NoGoal => Failure::usage(
                message,
                format!(
                    "Say it: archeflow loop start \"<goal>\"; or write a block into {PATH}: Agent: Human, Result: INIT, \
                     Step Summary: <goal>, Next: Planner"
                ),
            ),
            Error::BadProject { .. } => {
                Failure::usage(message, "Name it with --project: at most 80 characters, none of | = , ; :")
            }
            Error::Open { id, .. } => Failure::new(
                21,
                "refused",
                message,
                format!(
                    "Go on with it: archeflow loop status {id}; or end it: archeflow loop stop --run {id}"
                ),
            ),
            Error::NotClear { .. } => Failure::new(
                21,
                "refused",
                message,
                "To begin with an empty file, add --clear; its content is kept in docs/context/archive",
            ),
        }
    }
}
