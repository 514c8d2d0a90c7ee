//! Messages on standard input and output. A message that can't be read is answered or noted, and the next one is read; only
//! a stream whose frames are lost is given up.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use lsp_server::{Message, RequestId};

/// A longer message is refused: an editor sends a whole file at most.
const LONGEST: u64 = 64 * 1024 * 1024;
const LONGEST_HEAD: u64 = 8 * 1024;
/// Messages that wait to be handled.
const WAITING: usize = 256;

/// What the client sent.
#[derive(Debug)]
pub(super) enum Heard {
    Message(Message),
    /// Not a message; if it names the request it is meant to be, that one is answered.
    Unreadable {
        id: Option<RequestId>,
        why: String,
    },
    /// Nothing more can be read.
    Lost(String),
}

/// Reads in a thread of its own until the client closes the stream.
pub(super) fn listen() -> io::Result<Receiver<Heard>> {
    let (tell, heard) = sync_channel(WAITING);
    let read = move || read_all(&mut io::stdin().lock(), &tell);
    std::thread::Builder::new().name("lsp-reader".into()).spawn(read)?;
    Ok(heard)
}

fn read_all(from: &mut impl BufRead, tell: &SyncSender<Heard>) {
    loop {
        let heard = match frame(from) {
            Ok(Some(body)) => understood(&body),
            Ok(None) => return,
            Err(why) => Heard::Lost(why.to_string()),
        };
        let lost = matches!(heard, Heard::Lost(_));
        if tell.send(heard).is_err() || lost {
            return;
        }
    }
}

/// The body of the next message; nothing at the end of the stream.
fn frame(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut head = from.by_ref().take(LONGEST_HEAD);
    let mut length = None;
    let mut begun = false;
    loop {
        let mut line = Vec::new();
        head.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return if begun { Err(wrong("a message breaks off")) } else { Ok(None) };
        }
        if line.last() != Some(&b'\n') {
            return Err(wrong("the head of a message has no end"));
        }
        begun = true;
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let length = length.ok_or_else(|| wrong("a message has no Content-Length"))?;
    if length > LONGEST {
        return Err(wrong(&format!("a message has {length} bytes; at most {LONGEST} are taken")));
    }
    let mut body = Vec::new();
    from.by_ref().take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(wrong("a message breaks off"));
    }
    Ok(Some(body))
}

fn understood(body: &[u8]) -> Heard {
    let error = match serde_json::from_slice(body) {
        Ok(message) => return Heard::Message(message),
        Err(error) => error,
    };
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let asks = value.get("result").is_none() && value.get("error").is_none();
    let id = value.get("id").filter(|_| asks).and_then(|id| serde_json::from_value(id.clone()).ok());
    Heard::Unreadable { id, why: error.to_string() }
}

/// Where messages to the client go.
pub(super) struct Wire<W>(pub(super) W);

impl<W: Write> Wire<W> {
    pub(super) fn send(&mut self, message: impl Into<Message>) -> io::Result<()> {
        message.into().write(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(bytes: &[u8]) -> Vec<String> {
        let (tell, heard) = sync_channel(16);
        read_all(&mut &bytes[..], &tell);
        drop(tell);
        let name = |heard: Heard| match heard {
            Heard::Message(Message::Request(request)) => format!("request {}", request.method),
            Heard::Message(Message::Notification(note)) => format!("note {}", note.method),
            Heard::Message(Message::Response(response)) => format!("response {}", response.id),
            Heard::Unreadable { id, .. } => format!("unreadable {id:?}"),
            Heard::Lost(why) => why,
        };
        heard.into_iter().map(name).collect()
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn u_16_a_message_that_is_none_does_not_end_the_stream() {
        let exit = framed(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        let rows = [
            (String::new(), ""),
            (framed("{"), "unreadable None"),
            (framed("[]"), "unreadable None"),
            (framed(&"[".repeat(10_000)), "unreadable None"),
            (framed(r#"{"id":7,"method":8}"#), "unreadable Some(RequestId(I32(7)))"),
            (framed(r#"{"id":7,"result":null}"#), "response 7"),
            (framed(r#"{"id":null,"error":{}}"#), "unreadable None"),
            ("content-length:2\nOther: x\n\n{}".to_owned(), "unreadable None"),
            (framed("\u{fffd}"), "unreadable None"),
        ];
        for (bytes, first) in rows {
            let expected: Vec<&str> =
                [first, "note exit"].into_iter().filter(|row| !row.is_empty()).collect();
            assert_eq!(heard((bytes.clone() + &exit).as_bytes()), expected, "{bytes}");
        }
    }

    #[test]
    fn u_16_a_stream_without_frames_is_given_up() {
        let rows = [
            ("Content-Length: 10\r\n\r\n{}", "a message breaks off"),
            ("Content-Length: 10", "the head of a message has no end"),
            ("Other: 10\r\n\r\n", "a message has no Content-Length"),
            ("Content-Length: -1\r\n\r\n", "a message has no Content-Length"),
            (
                "Content-Length: 99999999999\r\n\r\n",
                "a message has 99999999999 bytes; at most 67108864 are taken",
            ),
        ];
        for (bytes, why) in rows {
            assert_eq!(heard(bytes.as_bytes()), [why], "{bytes}");
        }
        let endless = "x".repeat(20_000);
        assert_eq!(heard(endless.as_bytes()), ["the head of a message has no end"]);
    }
}
