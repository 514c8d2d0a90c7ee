//! The last bytes of a stream, in a buffer that never grows beyond its size.

#[derive(Debug)]
pub(super) struct Ring {
    bytes: Vec<u8>,
    size: usize,
    /// Where the oldest byte is, once the ring is full.
    oldest: usize,
}

impl Ring {
    /// Takes no memory before the first byte arrives.
    pub(super) fn new(size: usize) -> Self {
        Self { bytes: Vec::new(), size, oldest: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes; the oldest give way.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let chunk = chunk.get(chunk.len().saturating_sub(self.size)..).unwrap_or_default();
        let (fill, over) = chunk.split_at(chunk.len().min(self.size - self.bytes.len()));
        self.bytes.extend_from_slice(fill);
        let (first, second) = over.split_at(over.len().min(self.size - self.oldest));
        self.put(first);
        self.put(second);
    }

    /// The bytes in order, as two runs.
    pub(super) fn runs(&self) -> [&[u8]; 2] {
        let (newer, older) = self.bytes.split_at(self.oldest);
        [older, newer]
    }

    fn put(&mut self, run: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.oldest..self.oldest + run.len()) {
            place.copy_from_slice(run);
        }
        self.oldest = (self.oldest + run.len()) % self.size.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_of_the_stream_for_every_chunking() {
        let stream: Vec<u8> = (0..=255).collect();
        for size in [0, 1, 2, 7, 16, 255, 256, 300] {
            for chunk in 1..=40 {
                let mut ring = Ring::new(size);
                stream.chunks(chunk).for_each(|piece| ring.push(piece));
                let expected = &stream[stream.len().saturating_sub(size)..];
                assert_eq!(ring.runs().concat(), expected, "size {size}, chunk {chunk}");
                assert_eq!(ring.len(), expected.len());
            }
        }
    }
}
