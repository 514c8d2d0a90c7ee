//! From bytes, cut anywhere, to the JSON values in them: server-sent events, lines, or one whole document.

use serde_json::Value;

/// How a provider strings its values together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `data:` lines, a blank line behind each event.
    Events,
    /// A value on every line.
    Lines,
    /// One value, for providers that do not stream.
    Whole,
}

/// One value, or the end that some providers announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFrame {
    Value(Value),
    /// `[DONE]`.
    Done,
    /// Not JSON.
    Garbled,
}

#[derive(Debug)]
pub struct Frames {
    form: Form,
    rest: Vec<u8>,
    /// The data of the event that is coming in.
    event: Vec<u8>,
}

impl Frames {
    pub fn new(form: Form) -> Frames {
        Frames { form, rest: Vec::new(), event: Vec::new() }
    }

    /// Takes in what came and returns what is complete with it.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<StreamFrame> {
        self.rest.extend_from_slice(bytes);
        let mut frames = Vec::new();
        if self.form == Form::Whole {
            return frames;
        }
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            frames.extend(self.line(line.strip_suffix(b"\n").unwrap_or(&line)));
        }
        frames
    }

    /// Nothing more comes. A last line without its end counts; half an event does not.
    pub fn end(&mut self) -> Option<StreamFrame> {
        let rest = std::mem::take(&mut self.rest);
        match self.form {
            Form::Whole | Form::Lines => value(&rest),
            Form::Events => None,
        }
    }

    fn line(&mut self, line: &[u8]) -> Option<StreamFrame> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.form {
            Form::Lines | Form::Whole => value(line),
            Form::Events if line.is_empty() => value(&std::mem::take(&mut self.event)),
            Form::Events => {
                // Names of events, comments and retry times are for browsers.
                let data = line.strip_prefix(b"data:")?;
                if !self.event.is_empty() {
                    self.event.push(b'\n');
                }
                self.event.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                None
            }
        }
    }
}

fn value(bytes: &[u8]) -> Option<StreamFrame> {
    let bytes = bytes.trim_ascii();
    match bytes {
        b"" => None,
        b"[DONE]" => Some(StreamFrame::Done),
        bytes => Some(serde_json::from_slice(bytes).map_or(StreamFrame::Garbled, StreamFrame::Value)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Frames, StreamFrame};
    use serde_json::json;

    fn all(form: Form, pieces: &[&[u8]]) -> Vec<StreamFrame> {
        let mut frames = Frames::new(form);
        let mut found: Vec<StreamFrame> = pieces.iter().flat_map(|piece| frames.feed(piece)).collect();
        found.extend(frames.end());
        found
    }

    #[test]
    fn m_g6_values_come_out_whole_wherever_the_bytes_are_cut() {
        let one = || StreamFrame::Value(json!({"a": "ü"}));
        let two = || StreamFrame::Value(json!({"b": 2}));
        for (form, text, wanted) in [
            (
                Form::Events,
                ": hello\nevent: x\ndata: {\"a\": \"ü\"}\n\ndata: {\"b\":\r\ndata: 2}\r\n\r\ndata: [DONE]\n\n",
                vec![one(), two(), StreamFrame::Done],
            ),
            (Form::Events, "data: {\"a\": \"ü\"}\n\ndata: {\"b\": 2}\n", vec![one()]),
            (Form::Events, "data: nonsense\n\n<html>\n\n", vec![StreamFrame::Garbled]),
            (Form::Lines, "{\"a\": \"ü\"}\n\n{\"b\": 2}", vec![one(), two()]),
            (Form::Lines, "{\"a\": \"ü\"}\n{\"b\":", vec![one(), StreamFrame::Garbled]),
            (Form::Whole, "{\"a\":\n \"ü\"}\n", vec![one()]),
            (Form::Whole, "<html></html>", vec![StreamFrame::Garbled]),
            (Form::Whole, "", vec![]),
        ] {
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                let (left, right) = bytes.split_at(cut);
                assert_eq!(all(form, &[left, right]), wanted, "{text:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(all(form, &single), wanted, "{text:?} byte by byte");
        }
    }
}
