//! The items of a queue, and what waits for what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::Workflow;
use crate::model::named::named;

named! {
    /// Graver compares smaller, so that sorting puts what matters first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Priority {
        P0 = "P0",
        P1 = "P1",
        P2 = "P2",
        P3 = "P3",
    }
}

impl Priority {
    pub fn parse(name: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.name() == name)
    }
}

named! {
    /// How large a task is thought to be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum TaskSize {
        S = "S",
        M = "M",
        L = "L",
        #[serde(rename = "XL")]
        Xl = "XL",
    }
}

impl TaskSize {
    pub fn parse(name: &str) -> Option<TaskSize> {
        TaskSize::ALL.into_iter().find(|estimate| estimate.name() == name)
    }

    /// Of these only few run at a time.
    pub fn is_large(self) -> bool {
        self >= TaskSize::L
    }

    /// The workflow of a task for which none was named.
    pub fn workflow(self) -> Workflow {
        match self {
            TaskSize::S => Workflow::Fast,
            TaskSize::M => Workflow::Standard,
            TaskSize::L | TaskSize::Xl => Workflow::Thorough,
        }
    }

    /// The size that follows from a workflow.
    pub fn of_workflow(name: &str) -> TaskSize {
        match name {
            "fast" => TaskSize::S,
            "thorough" => TaskSize::L,
            _ => TaskSize::M,
        }
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ItemStatus {
        /// A person should look at it first.
        Proposed = "proposed",
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        /// Something it depends on can't be completed.
        Blocked = "blocked",
        Cancelled = "cancelled",
    }
}

impl ItemStatus {
    pub fn parse(name: &str) -> Option<ItemStatus> {
        ItemStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Nothing that waits for such an item will ever be ready.
    pub(super) fn is_lost(self) -> bool {
        matches!(self, ItemStatus::Failed | ItemStatus::Blocked | ItemStatus::Cancelled)
    }

    /// It can still become something.
    pub fn is_open(self) -> bool {
        matches!(self, ItemStatus::Proposed | ItemStatus::Pending | ItemStatus::Running)
    }
}

/// The blocked items that nothing keeps from running any more once this one is tried again (U-02), in any depth.
pub fn freed_by<'a>(items: impl Iterator<Item = &'a QueueItem>, id: &str) -> Vec<String> {
    let items: Vec<&QueueItem> = items.collect();
    let mut freed: Vec<String> = vec![id.to_owned()];
    loop {
        let is_lost = |on: &String| {
            !freed.contains(on) && items.iter().any(|item| item.id == *on && item.status.is_lost())
        };
        let next = items.iter().find(|item| {
            item.status == ItemStatus::Blocked
                && !freed.contains(&item.id)
                && item.depends_on.iter().any(|on| freed.contains(on))
                && !item.depends_on.iter().any(is_lost)
        });
        match next {
            Some(item) => freed.push(item.id.clone()),
            None => break,
        }
    }
    freed.split_off(1)
}

/// One task for one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueItem {
    pub id: String,
    /// A folder below the projects folder.
    pub project: String,
    pub task: String,
    pub priority: Priority,
    pub estimate: TaskSize,
    pub status: ItemStatus,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// By the estimate if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The paths it will touch, files or folders. Tasks that declare disjoint paths may run side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl QueueItem {
    /// The workflow a run of it gets.
    pub fn workflow(&self) -> &str {
        self.workflow.as_deref().unwrap_or(self.estimate.workflow().name())
    }

    /// The state of its dependencies, by their statuses. A missing one is waited for: it may be added yet.
    pub fn standing(&self, status: impl Fn(&str) -> Option<ItemStatus>) -> DependencyState {
        let status = |on: &&String| status(on);
        if let Some(lost) = self.depends_on.iter().find(|on| status(on).is_some_and(ItemStatus::is_lost)) {
            return DependencyState::Lost(lost.clone());
        }
        let waits: Vec<String> =
            self.depends_on.iter().filter(|on| status(on) != Some(ItemStatus::Completed)).cloned().collect();
        if waits.is_empty() { DependencyState::Ready } else { DependencyState::Waits(waits) }
    }

    /// Whether both declare their paths, and these are disjoint.
    pub fn is_apart_from(&self, other: &QueueItem) -> bool {
        let overlap = |one: &str, two: &str| {
            let (one, two) = (one.trim_end_matches('/'), two.trim_end_matches('/'));
            let below = |path: &str, folder: &str| {
                path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            below(one, two) || below(two, one) || one == "." || two == "."
        };
        let both_say = !self.files.is_empty() && !other.files.is_empty();
        both_say && !self.files.iter().any(|one| other.files.iter().any(|two| overlap(one, two)))
    }
}

/// The state of an item's dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyState {
    /// Everything it waits for is completed.
    Ready,
    /// It waits for these.
    Waits(Vec<String>),
    /// It will never be ready, because of this one.
    Lost(String),
}

/// What waits for what, in a queue at one moment. Of items with one name the first counts.
#[derive(Debug, Clone, Default)]
pub struct Graph<'a> {
    items: BTreeMap<&'a str, &'a QueueItem>,
}

impl<'a> Graph<'a> {
    pub fn of(items: impl IntoIterator<Item = &'a QueueItem>) -> Graph<'a> {
        let mut graph = Graph::default();
        for item in items {
            graph.items.entry(&item.id).or_insert(item);
        }
        graph
    }

    /// Dependencies that name nothing.
    pub fn unknown(&self) -> Vec<(&'a str, &'a str)> {
        let all = self.items.values().flat_map(|item| item.depends_on.iter().map(|on| (&*item.id, &**on)));
        all.filter(|(_, on)| !self.items.contains_key(on)).collect()
    }

    /// The first circle there is: each waits for the next one, and the last for the first.
    pub fn cycle(&self) -> Option<Vec<&'a str>> {
        let mut done = BTreeSet::new();
        // What waits for nothing is in no circle.
        let waiting = self.items.iter().filter(|(_, item)| !item.depends_on.is_empty());
        waiting.map(|(id, _)| id).find_map(|start| self.circle_from(start, &mut done))
    }

    /// A walk with a path of its own instead of recursion: a queue may be one long chain.
    fn circle_from(&self, start: &'a str, done: &mut BTreeSet<&'a str>) -> Option<Vec<&'a str>> {
        let mut path: Vec<(&'a str, usize)> = vec![(start, 0)];
        let mut on_path = BTreeSet::from([start]);
        while let Some((id, next)) = path.last_mut() {
            let on = self
                .items
                .get(*id)
                .filter(|_| !done.contains(*id))
                .and_then(|item| item.depends_on.get(*next));
            let Some(on) = on.map(String::as_str) else {
                done.insert(*id);
                on_path.remove(*id);
                path.pop();
                continue;
            };
            *next += 1;
            if on_path.contains(on) {
                let begin = path.iter().position(|(id, _)| *id == on).unwrap_or(0);
                return Some(path[begin..].iter().map(|(id, _)| *id).collect());
            }
            if self.items.contains_key(on) && !done.contains(on) {
                on_path.insert(on);
                path.push((on, 0));
            }
        }
        None
    }

    /// The state of an item's dependencies. A missing one is waited for: it may be added yet.
    pub fn standing(&self, item: &QueueItem) -> DependencyState {
        item.standing(|on| self.items.get(on).map(|item| item.status))
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::Items;
    use super::*;

    /// `b:a` is pending and waits for a; `a!` failed, `a+` completed, `a?` proposed.
    fn items(text: &str) -> Vec<QueueItem> {
        let item = |word: &str| {
            let (name, on) = word.split_once(':').unwrap_or((word, ""));
            let status = match name.chars().last() {
                Some('!') => ItemStatus::Failed,
                Some('+') => ItemStatus::Completed,
                Some('?') => ItemStatus::Proposed,
                _ => ItemStatus::Pending,
            };
            QueueItem {
                id: name.trim_end_matches(['!', '+', '?']).to_owned(),
                project: "p".to_owned(),
                task: name.to_owned(),
                priority: Priority::P2,
                estimate: TaskSize::S,
                status,
                depends_on: on.split(',').filter(|on| !on.is_empty()).map(str::to_owned).collect(),
                workflow: None,
                files: Vec::new(),
            }
        };
        text.split_whitespace().map(item).collect()
    }

    #[test]
    fn bx_23_a_circle_is_found_and_named() {
        for (queue, circle) in [
            ("a b:a c:b", ""),
            ("a b:a c:a d:b,c", ""),
            ("a:a", "a"),
            ("a:b b:a", "a b"),
            ("a b:a,d c:b d:c", "b d c"),
            ("x:y y:z z:nowhere", ""),
            ("a+:b b:a", "a b"),
        ] {
            let items = items(queue);
            let found = Graph::of(&items).cycle().unwrap_or_default().join(" ");
            assert_eq!(found, circle, "{queue}");
        }
    }

    #[test]
    fn bx_23_a_long_chain_is_walked_without_recursion() {
        let mut chain = String::from("n0");
        for n in 1..20_000 {
            chain.push_str(&format!(" n{n}:n{}", n - 1));
        }
        let items = items(&chain);
        assert_eq!(Graph::of(&items).cycle(), None);
    }

    #[test]
    fn bx_22_an_item_is_ready_when_all_it_waits_for_is_completed() {
        for (queue, standing) in [
            ("z", DependencyState::Ready),
            ("a+ z:a", DependencyState::Ready),
            ("a+ b z:a,b", DependencyState::Waits(vec!["b".to_owned()])),
            ("a? z:a", DependencyState::Waits(vec!["a".to_owned()])),
            ("z:nowhere", DependencyState::Waits(vec!["nowhere".to_owned()])),
            ("a! b z:b,a", DependencyState::Lost("a".to_owned())),
        ] {
            let items = items(queue);
            let last = items.last().unwrap();
            assert_eq!(Graph::of(&items).standing(last), standing, "{queue}");
        }
    }

    #[test]
    fn bx_23_everything_downstream_of_a_failure_is_found() {
        for (queue, lost) in [
            ("a! b:a c:b d", "b<a c<b"),
            ("c:b b:a a!", "b<a c<b"),
            ("a+ b:a", ""),
            ("a! b?:a c+:a", "b<a"),
            ("a! b:c c:b,a", "b<c c<a"),
            ("a:a", ""),
        ] {
            let mut known = Items::default();
            items(queue).iter().for_each(|item| known.see(item));
            let found = known.downstream_of_lost();
            let found: Vec<String> = found.iter().map(|(id, on)| format!("{id}<{on}")).collect();
            assert_eq!(found.join(" "), lost, "{queue}");
            assert_eq!(known, known.reindexed(), "{queue}");
        }
    }

    #[test]
    fn bx_22_only_what_says_what_it_touches_can_be_apart() {
        let with = |files: &str| QueueItem {
            files: files.split_whitespace().map(str::to_owned).collect(),
            ..items("a").remove(0)
        };
        for (one, two, apart) in [
            ("", "", false),
            ("a.rs", "", false),
            ("a.rs", "b.rs", true),
            ("a.rs b.rs", "b.rs", false),
            ("src/", "src/a.rs", false),
            ("src/a.rs", "src", false),
            ("src", "src2/a.rs", true),
            (".", "a.rs", false),
        ] {
            assert_eq!(with(one).is_apart_from(&with(two)), apart, "{one} | {two}");
            assert_eq!(with(two).is_apart_from(&with(one)), apart, "{two} | {one}");
        }
    }
}
