//! Other people's text on its way to a reader: what each filter and escape makes of it, and the hostile corpus.

#![expect(clippy::disallowed_methods, reason = "the tests read the corpus; only the core itself is pure")]

use std::path::PathBuf;

use archeflow_core::text::{self, is_unsafe};

/// Declares where a text can go, with the filter for each place.
macro_rules! destinations {
    ($($name:ident => |$raw:ident| $escape:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Goes { $($name),* }

        const ALL: &[Goes] = &[$(Goes::$name),*];

        fn sent(goes: Goes, raw: &str) -> String {
            match goes { $(Goes::$name => { let $raw = raw; $escape })* }
        }
    };
}

const MOST: usize = 60;

destinations! {
    Terminal => |raw| text::safe(raw);
    TerminalLine => |raw| text::safe_line(raw);
    Short => |raw| text::short_line(raw, MOST);
    Cells => |raw| text::cells(raw);
    Log => |raw| text::log_text(raw, MOST);
    Html => |raw| text::html(&text::short_line(raw, MOST));
    Markdown => |raw| text::markdown(raw, MOST);
    Comment => |raw| text::markdown_comment(raw, MOST);
    Code => |raw| text::code_span(raw, MOST);
    Block => |raw| text::code_block(&text::safe(raw));
    Cell => |raw| text::table_cell(raw);
    Json => |raw| text::json(&serde_json::Value::from(raw).to_string());
    Shell => |raw| text::shell_word(&text::safe_line(raw));
    FileName => |raw| text::file_name(raw);
    Identifier => |raw| text::identifier(raw);
    Revealed => |raw| text::revealed(raw, MOST);
    Columns => |raw| text::revealed_in_columns(raw, MOST);
    Inside => |raw| text::one_line(raw);
}

use Goes::*;

#[test]
fn u_16_every_text_is_escaped_for_where_it_goes() {
    let long = "x".repeat(1_000);
    let sixty = format!("{}…", "x".repeat(59));
    let rows: &[(Goes, &str, &str)] = &[
        (Terminal, "\x1b]52;c;aGk=\x07hello", "]52;c;aGk=hello"),
        (Terminal, "\x1b[2J\x1b[31mred", "[2J[31mred"),
        (Terminal, "a\u{9b}31mb", "a31mb"),
        (Terminal, "left\u{202e}right", "leftright"),
        (Terminal, "zero\u{200b}width", "zerowidth"),
        (Terminal, "bell\x07 back\x08space\r", "bell backspace"),
        (Terminal, "plain ✓ ünïcode\n\ttwo", "plain ✓ ünïcode\n\ttwo"),
        (TerminalLine, "two\nlines\tand  more ", "two lines and more"),
        (TerminalLine, "a\rb\x0bc", "a b c"),
        (TerminalLine, "a \x1b b", "a b"),
        (TerminalLine, "plain", "plain"),
        (TerminalLine, "", ""),
        (Short, &long, &sixty),
        (Short, "a\nb", "a b"),
        (Cells, "a\nb\tc", "a b c"),
        (Cells, "e\u{301}\u{301}\u{301}\u{301}!", "e\u{301}\u{301}!"),
        (Cells, "☠\u{fe0f}", "☠"),
        (Log, "a ##[error]b\nc", "a ## [error]b\nc"),
        (Html, "</script><b>", "&lt;/script&gt;&lt;b&gt;"),
        (Html, "<img src=x onerror='y'>", "&lt;img src=x onerror=&#39;y&#39;&gt;"),
        (Html, "a\u{1b}[2Jb\u{202e}c\u{200b}d", "a[2Jbcd"),
        (Html, "\"&lt;\"", "&quot;&amp;lt;&quot;"),
        (Markdown, "<b>'x'</b>", "&lt;b&gt;'x'&lt;/b&gt;"),
        (Markdown, "![x](http://e.example/p)", "\\!\\[x\\](http://e.example/p)"),
        (Markdown, "a | b\nc", "a \\| b c"),
        (Markdown, "# *a* _b_ `c` ~d~ \\", "\\# \\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\\\"),
        (Comment, "@you see #1", "@&#8203;you see \\#&#8203;1"),
        (Comment, "/merge", "\\/merge"),
        (Comment, "!1 &2 $3 [issue:4]", "\\!&#8203;1 &amp;&#8203;2 \\$&#8203;3 \\[&#8203;issue:4\\]"),
        (Comment, "http://www.e.example GH-1", "http:&#8203;//www.&#8203;e.example GH-&#8203;1"),
        (Comment, "$a$ <i>", "\\$a\\$ &lt;i&gt;"),
        // U-16: code stays code, and what is in it stays text.
        (Comment, "hands `x_1` to `execute`", "hands `x_1` to `execute`"),
        (Comment, "``a ` b`` *c*", "`a ' b` \\*c\\*"),
        (Comment, "`@you [a](b) #1 &amp;`", "`@you [a](b) #1 &amp;`"),
        (Comment, "`Vec<u8>` <b>", "<code>Vec&lt;u8&gt;</code> &lt;b&gt;"),
        (Comment, "`<script>a</script>`", "<code>&lt;script&gt;a&lt;/script&gt;</code>"),
        (Comment, "`a | b`", "<code>a \\| b</code>"),
        (Comment, "`a | </code><img> @you`", "<code>a \\| &lt;/code&gt;&lt;img&gt; @&#8203;you</code>"),
        (Comment, "`c:\\` [a](b)", "<code>c:\\\\</code> \\[a\\](b)"),
        (Comment, "\\`a` @b`", "\\\\`a` @&#8203;b\\`"),
        (Comment, "one ` <b> ` `` ```", "one <code>&lt;b&gt;</code> \\`\\` \\`\\`\\`"),
        (Comment, "` ` ``", "\\` \\` \\`\\`"),
        (Comment, "```js", "\\`\\`\\`js"),
        (Comment, "$`x`$", "\\$&#8203;`x`&#8203;\\$"),
        (Code, "a`b|c", "`a'b\\|c`"),
        (Code, " ", ""),
        (Block, "a ```` b", "`````text\na ```` b\n`````\n"),
        (Block, "a\n", "```text\na\n```\n"),
        (Cell, "a | b\nc", "a \\| b c"),
        (Json, "a\u{9b}\u{e0041}\n", "\"a\\u009b\\udb40\\udc41\\n\""),
        (Json, "##[group]", "\"##\\u005bgroup]\""),
        (Shell, "src/a-b_c.rs:12", "src/a-b_c.rs:12"),
        (Shell, "/a b/it's", "'/a b/it'\\''s'"),
        (Shell, "$(x)", "'$(x)'"),
        (Shell, "", "''"),
        (FileName, "Fix the §6 Login!", "fix-the-6-login"),
        (FileName, "../../etc/passwd", "etc-passwd"),
        (FileName, "\u{202e}", "task"),
        (
            FileName,
            "one two three four five six seven eight nine ten eleven",
            "one-two-three-four-five-six-seven-eight-nine-ten",
        ),
        (Identifier, "SQL Injection_1", "sql-injection_1"),
        (Identifier, "../", "other"),
        (Revealed, "a\u{202e}b\r\tc", "a⟨U+202E⟩b⟨U+000D⟩\tc"),
        (Revealed, &long, &format!("{}…", "x".repeat(60))),
        (Columns, "a\tb\u{1b}", "a   b⟨U+001B⟩"),
        (Columns, "##[x]", "## [x]"),
        (Inside, " a\n\u{202e}b ", "a \u{202e}b"),
    ];
    for (goes, raw, drawn) in rows {
        assert_eq!(sent(*goes, raw), *drawn, "{goes:?} of {raw:?}");
    }
    for &goes in ALL {
        assert!(rows.iter().any(|(tried, ..)| *tried == goes), "no row for {goes:?}");
    }
}

/// Inside the program nothing is filtered yet, and a table cell of a Markdown page is made from such lines.
fn is_filtered(goes: Goes) -> bool {
    !matches!(goes, Inside | Cell)
}

#[test]
fn nothing_of_the_hostile_corpus_reaches_a_reader() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/ansi");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let raw = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        files += 1;
        for goes in ALL.iter().copied().filter(|goes| is_filtered(*goes)) {
            let drawn = sent(goes, &raw);
            let left = drawn.chars().find(|c| is_unsafe(*c) && !matches!(c, '\n' | '\t'));
            assert_eq!(left, None, "{goes:?} of {}: {drawn:?}", path.display());
        }
        assert_eq!(text::safe(&text::safe(&raw)), text::safe(&raw), "{}", path.display());
        assert_eq!(text::safe_line(&text::safe_line(&raw)), text::safe_line(&raw), "{}", path.display());
        let read: serde_json::Value = serde_json::from_str(&sent(Json, &raw)).unwrap();
        assert_eq!(read, serde_json::Value::from(raw), "{}", path.display());
    }
    assert!(files >= 24, "the corpus has shrunk to {files}");
}
