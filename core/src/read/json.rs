//! A small strict JSON reader: the core has no other, and findings in a `json` fence need no more.

const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As written: nothing here computes with it.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In the order written. A key that is given twice is an error.
    Map(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Map(entries) => {
                entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, v)| v)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => None,
        }
    }

    /// The text of a string or a number.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match self {
            Json::Number(text) | Json::Text(text) => Some(text),
            Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => None,
        }
    }
}

/// One value and nothing after it, or `None`.
pub(crate) fn parse(text: &str) -> Option<Json> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            b'{' => self.map(depth),
            b'[' => self.list(depth),
            b'"' => self.string().map(Json::Text),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            b'n' => self.take("null").map(|()| Json::Null),
            _ => self.number(),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Json> {
        self.at += 1;
        let mut entries: Vec<(String, Json)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        self.space();
        if self.take("}").is_some() {
            return Some(Json::Map(entries));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.take(":")?;
            let value = self.value(depth + 1)?;
            if !seen.insert(key.to_ascii_lowercase()) {
                return None;
            }
            entries.push((key, value));
            self.space();
            if self.take("}").is_some() {
                return Some(Json::Map(entries));
            }
            self.take(",")?;
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.take("]").is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]").is_some() {
                return Some(Json::List(items));
            }
            self.take(",")?;
        }
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut out = String::new();
        loop {
            let c = self.text.get(self.at..)?.chars().next()?;
            self.at += c.len_utf8();
            match c {
                '"' => return Some(out),
                '\\' => out.push(self.escape()?),
                c if u32::from(c) < 0x20 => return None,
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        match c {
            b'"' => Some('"'),
            b'\\' => Some('\\'),
            b'/' => Some('/'),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'n' => Some('\n'),
            b'r' => Some('\r'),
            b't' => Some('\t'),
            b'u' => self.unicode(),
            _ => None,
        }
    }

    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.take("\\u")?;
        let second = self.hex()?;
        let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + low)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Option<Json> {
        let start = self.at;
        let _ = self.take("-");
        let whole = self.at;
        let digits = self.digits()?;
        if digits > 1 && self.text.as_bytes().get(whole) == Some(&b'0') {
            return None;
        }
        if self.take(".").is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(Json::Number(self.text.get(start..self.at)?.to_owned()))
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, parse};

    #[test]
    fn strict_and_bounded() {
        for good in ["null", " [1, -0.5e+3, \"a\\u00e9\\ud83d\\ude00\"] ", "{\"a\": {\"b\": []}}"] {
            assert!(parse(good).is_some(), "{good}");
        }
        let bad = [
            "",
            "[1,]",
            "{a:1}",
            "01",
            "1 2",
            "\"\n\"",
            "\"\\ud800\"",
            "{\"a\":1,\"a\":2}",
            "[",
            "+1",
            "NaN",
        ];
        for bad in bad {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"[".repeat(1_000_000)), None);
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&deep(32)).is_some());
        assert_eq!(parse(&deep(34)), None);
        assert_eq!(parse("[true]"), Some(Json::List(vec![Json::Bool(true)])));
    }
}
