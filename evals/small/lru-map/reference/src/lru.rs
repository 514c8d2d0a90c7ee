//! A map that drops what was not used for the longest time. See README.md.

pub struct Lru<V> {
    capacity: usize,
    entries: Vec<(String, V)>,
}

impl<V> Lru<V> {
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "the capacity must be at least 1");
        Lru { capacity, entries: Vec::new() }
    }

    pub fn get(&mut self, key: &str) -> Option<&V> {
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        let entry = self.entries.remove(at);
        self.entries.push(entry);
        self.peek(key)
    }

    pub fn peek(&self, key: &str) -> Option<&V> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn put(&mut self, key: &str, value: V) -> Option<(String, V)> {
        // First the old value of the key: it must not count against the capacity.
        self.entries.retain(|(name, _)| name != key);
        let dropped = if self.entries.len() == self.capacity { Some(self.entries.remove(0)) } else { None };
        self.entries.push((key.to_string(), value));
        dropped
    }

    pub fn keys(&self) -> Vec<&str> {
        self.entries.iter().map(|(name, _)| name.as_str()).collect()
    }
}
