//! Lines out of bytes that arrive in pieces of any size, when a line may be longer than memory.

/// A line, or a piece of one that is too long to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineChunk<'a> {
    /// Without the newline. A piece that is not the first begins with the end of the one before.
    pub bytes: &'a [u8],
    /// How many of the bytes have been in the piece before.
    pub again: usize,
    pub first: bool,
    pub last: bool,
}

/// Puts lines together and gives them out, a long one in pieces that overlap.
#[derive(Debug, Clone)]
pub struct LineChunker {
    held: Vec<u8>,
    again: usize,
    begun: bool,
    most: usize,
    overlap: usize,
}

impl LineChunker {
    /// At most `most` bytes are held. What spans at most `overlap` bytes is whole in one of the pieces.
    pub fn new(most: usize, overlap: usize) -> LineChunker {
        LineChunker { held: Vec::new(), again: 0, begun: false, most: most.max(overlap + 1), overlap }
    }

    pub fn feed(&mut self, mut bytes: &[u8], give: &mut dyn FnMut(LineChunk<'_>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.hold(&bytes[..at], give);
            self.end_line(give);
            bytes = &bytes[at + 1..];
        }
        self.hold(bytes, give);
    }

    /// The last line, when no newline ended it.
    pub fn finish(&mut self, give: &mut dyn FnMut(LineChunk<'_>)) {
        if self.begun || self.held.len() > self.again {
            self.end_line(give);
        }
    }

    fn hold(&mut self, mut bytes: &[u8], give: &mut dyn FnMut(LineChunk<'_>)) {
        while self.held.len() + bytes.len() > self.most {
            let (now, later) = bytes.split_at(self.most - self.held.len());
            self.held.extend_from_slice(now);
            give(LineChunk { bytes: &self.held, again: self.again, first: !self.begun, last: false });
            self.held.drain(..self.held.len() - self.overlap);
            (self.begun, self.again, bytes) = (true, self.overlap, later);
        }
        self.held.extend_from_slice(bytes);
    }

    fn end_line(&mut self, give: &mut dyn FnMut(LineChunk<'_>)) {
        give(LineChunk { bytes: &self.held, again: self.again, first: !self.begun, last: true });
        self.held.clear();
        (self.begun, self.again) = (false, 0);
    }
}
