//! The whole program through its front door: the real binary, real git, real processes.
//!
//! `harness/harness.rs` knows how to start a run and `e2e/audit.rs` what must hold after every start, `harness/hub.rs` how to
//! start a sprint; everything else is rows. Names carry the rule or the fault they prove.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

#[path = "e2e/audit.rs"]
mod audit;
#[path = "harness/harness.rs"]
mod harness;
#[path = "harness/hub.rs"]
mod hub;
#[path = "e2e/model.rs"]
mod model;
#[path = "harness/user.rs"]
mod user;
#[path = "e2e/walkthroughs.rs"]
mod walkthroughs;
#[path = "e2e/wire.rs"]
mod wire;

#[path = "e2e/accounts.rs"]
mod accounts;
#[path = "e2e/acp.rs"]
mod acp;
#[path = "e2e/agent_loop.rs"]
mod agent_loop;
#[path = "e2e/agent_loop_judges.rs"]
mod agent_loop_judges;
#[path = "e2e/agents.rs"]
mod agents;
#[path = "e2e/arms.rs"]
mod arms;
#[path = "e2e/auditor.rs"]
mod auditor;
#[path = "e2e/breaks.rs"]
mod breaks;
#[path = "e2e/briefs.rs"]
mod briefs;
#[path = "e2e/budget.rs"]
mod budget;
#[path = "e2e/build_cache.rs"]
mod build_cache;
#[path = "e2e/ci.rs"]
mod ci;
#[path = "e2e/cleaning.rs"]
mod cleaning;
#[path = "e2e/client_files.rs"]
mod client_files;
#[path = "e2e/clients.rs"]
mod clients;
#[path = "e2e/commits.rs"]
mod commits;
#[path = "e2e/control.rs"]
mod control;
#[path = "e2e/corpus.rs"]
mod corpus;
#[path = "e2e/deep.rs"]
mod deep;
#[path = "e2e/doctor.rs"]
mod doctor;
#[path = "e2e/domains.rs"]
mod domains;
#[path = "e2e/entries.rs"]
mod entries;
#[path = "e2e/escapes.rs"]
mod escapes;
#[path = "e2e/eval.rs"]
mod eval;
#[path = "e2e/eval_run.rs"]
mod eval_run;
#[path = "e2e/forge.rs"]
mod forge;
#[path = "e2e/forge_faults.rs"]
mod forge_faults;
#[path = "e2e/forge_server.rs"]
mod forge_server;
#[path = "e2e/forms.rs"]
mod forms;
#[path = "e2e/fresh_trees.rs"]
mod fresh_trees;
#[path = "e2e/gates.rs"]
mod gates;
#[path = "e2e/git_setups.rs"]
mod git_setups;
#[path = "e2e/inbox.rs"]
mod inbox;
#[path = "e2e/init.rs"]
mod init;
#[path = "e2e/judgement.rs"]
mod judgement;
#[path = "e2e/landing.rs"]
mod landing;
#[path = "e2e/looking.rs"]
mod looking;
#[path = "e2e/lsp.rs"]
mod lsp;
#[path = "e2e/lsp_editor.rs"]
mod lsp_editor;
#[path = "e2e/mcp.rs"]
mod mcp;
#[path = "e2e/mcp_clients.rs"]
mod mcp_clients;
#[path = "e2e/mcp_faults.rs"]
mod mcp_faults;
#[path = "e2e/memory.rs"]
mod memory;
#[path = "e2e/models.rs"]
mod models;
#[path = "e2e/monorepo.rs"]
mod monorepo;
#[path = "e2e/names.rs"]
mod names;
#[path = "e2e/notifications.rs"]
mod notifications;
#[path = "e2e/outcomes.rs"]
mod outcomes;
#[path = "e2e/plugin_clients.rs"]
mod plugin_clients;
#[path = "e2e/plugins.rs"]
mod plugins;
#[path = "e2e/preflight.rs"]
mod preflight;
#[path = "e2e/process.rs"]
mod process;
#[path = "e2e/remote.rs"]
mod remote;
#[path = "e2e/replay.rs"]
mod replay;
#[path = "e2e/replica.rs"]
mod replica;
#[path = "e2e/reports.rs"]
mod reports;
#[path = "e2e/revert.rs"]
mod revert;
#[path = "e2e/review.rs"]
mod review;
#[path = "e2e/rollback.rs"]
mod rollback;
#[path = "e2e/safety.rs"]
mod safety;
#[path = "e2e/sandbox.rs"]
mod sandbox;
#[path = "e2e/screen.rs"]
mod screen;
#[path = "e2e/shadows.rs"]
mod shadows;
#[path = "e2e/shapes.rs"]
mod shapes;
#[path = "e2e/short_names.rs"]
mod short_names;
#[path = "e2e/signals.rs"]
mod signals;
#[path = "e2e/sim.rs"]
mod sim;
#[path = "e2e/sprint.rs"]
mod sprint;
#[path = "e2e/sprint_landing.rs"]
mod sprint_landing;
#[path = "e2e/stdout.rs"]
mod stdout;
#[path = "e2e/storage.rs"]
mod storage;
#[path = "e2e/telemetry.rs"]
mod telemetry;
#[path = "e2e/transfer.rs"]
mod transfer;
#[path = "e2e/trust.rs"]
mod trust;
#[path = "e2e/ui.rs"]
mod ui;
#[path = "e2e/ui_browser.rs"]
mod ui_browser;
#[path = "e2e/ui_scene.rs"]
mod ui_scene;
