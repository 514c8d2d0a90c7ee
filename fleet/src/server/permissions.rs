//! What each role may send and hear, as the server enforces it. Everything else is refused.

use crate::join::FleetRole;
use crate::nats::{inbox, stream_names};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
}

const PEOPLE_READ: [&str; 7] =
    ["AF_JOURNAL", "AF_FILES", "AF_SUBMIT", "KV_AF_LEDGER", "KV_AF_ACCOUNT", "KV_AF_TRUST", "KV_AF_REPO"];
const WORKERS_READ: [&str; 6] =
    ["AF_JOURNAL", "AF_FILES", "AF_SUBMIT", "KV_AF_ACCOUNT", "KV_AF_TRUST", "KV_AF_REPO"];

pub fn permissions(role: FleetRole, name: &str) -> Permissions {
    // Answers come to an inbox of its own, and nobody else may listen there.
    let mut subscribe = vec![format!("{}.>", inbox(name))];
    let mut publish = vec!["$JS.API.INFO".to_owned()];
    match role {
        FleetRole::Worker => {
            publish.extend(texts(&["af1.j.run.>", "af1.f.>", "af1.r.>", "af1.m.>", "$KV.AF_ACCOUNT.>"]));
            publish.push(format!("af1.hb.{name}"));
            publish.extend(WORKERS_READ.iter().flat_map(|stream| read(stream)));
            publish.extend(texts(&[
                "$JS.API.STREAM.INFO.AF_ORDERS",
                "$JS.API.STREAM.INFO.AF_REPORTS",
                "$JS.API.CONSUMER.INFO.AF_ORDERS.*",
                "$JS.API.CONSUMER.MSG.NEXT.AF_ORDERS.*",
                "$JS.ACK.AF_ORDERS.>",
            ]));
            subscribe.push(format!("af1.c.{name}"));
        }
        FleetRole::Person => {
            publish.extend([format!("af1.s.{name}"), format!("af1.a.{name}.>")]);
            publish.extend(PEOPLE_READ.iter().flat_map(|stream| read(stream)));
            publish.extend(texts(&[
                "$JS.API.STREAM.INFO.AF_ORDERS",
                "$JS.API.STREAM.INFO.AF_REPORTS",
                "$JS.API.CONSUMER.INFO.AF_ORDERS.*",
                "$JS.API.CONSUMER.LIST.AF_ORDERS",
            ]));
            subscribe.extend(texts(&["af1.hb.>", "af1.m.>"]));
        }
        FleetRole::Conductor => {
            publish.extend(texts(&["af1.o.>", "af1.c.>", "af1.f.>", "af1.j.sprint.>"]));
            publish.extend(texts(&[
                "$KV.AF_LEDGER.>",
                "$KV.AF_ACCOUNT.>",
                "$KV.AF_TRUST.>",
                "$KV.AF_REPO.>",
            ]));
            publish.extend(stream_names().flat_map(read));
            for stream in ["AF_ORDERS", "AF_REPORTS", "AF_SUBMIT"] {
                publish.extend([
                    format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
                    format!("$JS.API.CONSUMER.INFO.{stream}.*"),
                    format!("$JS.API.CONSUMER.LIST.{stream}"),
                ]);
            }
            for stream in ["AF_REPORTS", "AF_SUBMIT"] {
                publish
                    .extend([format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"), format!("$JS.ACK.{stream}.>")]);
            }
            // Queues of ended sprints, orders that were answered, and `fleet gc`.
            publish.extend(texts(&[
                "$JS.API.CONSUMER.DELETE.AF_ORDERS.*",
                "$JS.API.CONSUMER.DELETE.AF_REPORTS.*",
                "$JS.API.STREAM.MSG.DELETE.AF_ORDERS",
                "$JS.API.STREAM.PURGE.AF_JOURNAL",
                "$JS.API.STREAM.PURGE.AF_FILES",
            ]));
            subscribe.extend(texts(&["af1.hb.>", "af1.m.>"]));
        }
        FleetRole::Serve => {
            for what in ["CREATE", "UPDATE", "INFO"] {
                publish.push(format!("$JS.API.STREAM.{what}.*"));
            }
            publish.push(crate::names::MEMBERS.to_owned());
        }
    }
    Permissions { publish, subscribe }
}

/// Reads messages by their number or subject, and how many there are.
fn read(stream: &str) -> [String; 2] {
    [format!("$JS.API.DIRECT.GET.{stream}"), format!("$JS.API.STREAM.INFO.{stream}")]
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
