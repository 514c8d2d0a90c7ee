//! A ring of the latest entries, for the crash report.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub at_ms: u64,
    pub text: String,
}

#[derive(Debug)]
pub struct Ring {
    entries: Vec<Entry>,
    capacity: usize,
    next: usize,
}

impl Ring {
    pub fn new(capacity: usize) -> Ring {
        assert!(capacity > 0, "a ring without room holds nothing");
        Ring { entries: Vec::with_capacity(capacity), capacity, next: 0 }
    }

    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() < self.capacity {
            self.entries.push(entry);
        } else {
            self.entries[self.next] = entry;
        }
        self.next = (self.next + 1) % self.capacity;
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The latest `count` entries, oldest first.
    pub fn latest(&self, count: usize) -> Vec<&Entry> {
        let ordered = self.in_order();
        let skip = ordered.len().saturating_sub(count);
        ordered.into_iter().skip(skip).collect()
    }

    fn in_order(&self) -> Vec<&Entry> {
        if self.entries.len() < self.capacity {
            return self.entries.iter().collect();
        }
        let (young, old) = self.entries.split_at(self.next);
        old.iter().chain(young).collect()
    }
}
