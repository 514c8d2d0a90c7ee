//! The entries of a queue. Everything that looks at one comes through here, and debug builds count it: a queue may be
//! long, and no command may look at all of it for each of its items.

use std::slice;

use super::queue::Entry;

#[derive(Debug, Clone, Default)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    pub(super) fn with_room(count: usize) -> Entries {
        Entries(Vec::with_capacity(count))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        count();
        self.0.push(entry);
    }

    pub(super) fn get(&self, place: usize) -> Option<&Entry> {
        count();
        self.0.get(place)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Entry> {
        count();
        self.0.get_mut(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> + use<'_> {
        self.0.iter().inspect(|_| count())
    }

    pub(super) fn iter_mut(&mut self) -> slice::IterMut<'_, Entry> {
        (0..self.0.len()).for_each(|_| count());
        self.0.iter_mut()
    }
}

#[cfg(debug_assertions)]
thread_local! {
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn count() {
    #[cfg(debug_assertions)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

/// How often this thread has looked at an entry of any queue, for tests; nothing where it is not counted.
pub fn looks() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(LOOKS.with(std::cell::Cell::get));
    #[cfg(not(debug_assertions))]
    None
}
