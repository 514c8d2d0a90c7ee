//! Diffs and mails with diffs, applied to an index of ours. Paths that lead out of the tree or into `.git` are refused
//! by git itself; refusals are reported with git's own message, which names file and line.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use super::store::SubjectStore;
use super::{Error, ResolvedSubject, about, names};
use crate::git::{ObjectId, files};

const DEADLINE: Duration = Duration::from_secs(600);

/// More mails than this are a mailbox, not a change.
const MAILS: usize = 500;

/// Of a mail's own words.
const LETTER: u64 = 64 * 1024;

/// The description its author gave a patch.
#[derive(Default)]
struct Letters {
    subject: Option<String>,
    words: Vec<String>,
}

pub(super) fn given(
    store: &SubjectStore<'_>,
    bytes: &[u8],
    name: &str,
    base: Option<&str>,
) -> Result<ResolvedSubject, Error> {
    let diff = store.dir.join("diff");
    let io = |source| store.io(source);
    let letters = if is_mail(bytes) {
        let mail = store.dir.join("mail");
        files::write_new(&mail, bytes, 0o600).map_err(io)?;
        opened(store, &mail, &diff, name, head_of(bytes).contains(&b'\r'))?
    } else {
        files::write_new(&diff, bytes, 0o600).map_err(io)?;
        Letters::default()
    };
    let onto = names::commit_or_head(store, base)?;
    let remedy = "name the commit it was made for with --base";
    let tree = applied(store, &onto, &diff, name, base.unwrap_or("HEAD"), remedy)?;
    let said = if letters.words.is_empty() {
        String::new()
    } else {
        about::quoted_section("What the patch says", &letters.words.join("\n\n"))
    };
    Ok(ResolvedSubject {
        commit: store.commit(&tree, &onto)?,
        base: onto,
        title: letters.subject.unwrap_or_else(|| format!("Patch {name}")),
        key: format!("patch:{name}"),
        said,
        notes: Vec::new(),
        nothing: format!("{name} changes nothing"),
    })
}

/// The tree that a diff makes of a commit's.
pub(super) fn applied(
    store: &SubjectStore<'_>,
    onto: &ObjectId,
    diff: &Path,
    name: &str,
    base: &str,
    remedy: &str,
) -> Result<ObjectId, Error> {
    store.git()?.args(["read-tree", onto.as_str()]).done()?;
    let strip = if has_prefixes(diff).map_err(|source| store.io(source))? { "-p1" } else { "-p0" };
    let git = store.git()?.args(["apply", "--cached", "--whitespace=nowarn", strip]).arg(diff);
    let output = git.deadline(DEADLINE).run()?;
    if output.status.success() {
        return Ok(store.write_tree()?);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    let name = name.to_owned();
    if said.is_empty() || said.iter().any(|line| line.starts_with("No valid patches")) {
        let said = "what `git diff` and `git format-patch` print is understood".to_owned();
        return Err(Error::NotAPatch { name, said });
    }
    let said = few(&said);
    Err(Error::DoesNotApply { name, base: base.to_owned(), said, remedy: remedy.to_owned() })
}

/// The first of git's complaints; the rest are of the same kind.
fn few(said: &[&str]) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = said.iter().take(SHOWN).map(|line| format!("  {line}")).collect();
    if let Some(more) = said.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more lines like these"));
    }
    lines.join("\n")
}

/// Takes mails apart: the diffs go to `diff`, the words are handed back.
fn opened(
    store: &SubjectStore<'_>,
    mail: &Path,
    diff: &Path,
    name: &str,
    carriage: bool,
) -> Result<Letters, Error> {
    let io = |source| store.io(source);
    let apart = store.dir.join("mails");
    fs::create_dir(&apart).map_err(io)?;
    let mut into = std::ffi::OsString::from("-o");
    into.push(&apart);
    // Returns that came with the mail's own lines are not the diff's.
    let keep = if carriage { "-b" } else { "--keep-cr" };
    store.git()?.args(["mailsplit", "-b", keep]).arg(into).arg("--").arg(mail).deadline(DEADLINE).done()?;
    let _ = fs::remove_file(mail);
    let mut mails: Vec<_> = fs::read_dir(&apart).map_err(io)?.flatten().map(|mail| mail.path()).collect();
    mails.sort();
    if mails.len() > MAILS {
        let said = format!("{} mails are more than the {MAILS} that are taken for one change", mails.len());
        return Err(Error::NotAPatch { name: name.to_owned(), said });
    }
    let mut all = File::create(diff).map_err(io)?;
    let mut letters = Letters::default();
    for mail in &mails {
        let (said, part) = (store.dir.join("said"), store.dir.join("part"));
        let subject = read_one(store, mail, &said, &part)?;
        letters.add(subject, &said).map_err(io)?;
        io::copy(&mut File::open(&part).map_err(io)?, &mut all).map_err(io)?;
        let _ = fs::remove_file(mail);
    }
    Ok(letters)
}

fn read_one(store: &SubjectStore<'_>, mail: &Path, said: &Path, part: &Path) -> Result<String, Error> {
    let file = File::open(mail).map_err(|source| store.io(source))?;
    let git = store.git()?.arg("mailinfo").args([said, part]).input_file(file);
    let head = git.deadline(DEADLINE).done()?.stdout;
    let head = String::from_utf8_lossy(&head).into_owned();
    Ok(head.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default().to_owned())
}

impl Letters {
    fn add(&mut self, subject: String, said: &Path) -> io::Result<()> {
        let mut body = Vec::new();
        File::open(said)?.take(LETTER).read_to_end(&mut body)?;
        let words = format!("{subject}\n\n{}", String::from_utf8_lossy(&body).trim());
        self.words.push(words.trim().to_owned());
        self.subject.get_or_insert(subject);
        self.subject.take_if(|subject| subject.is_empty());
        Ok(())
    }
}

/// Whether it begins like a mail or a mailbox, rather than like a diff with a few words before it.
fn is_mail(bytes: &[u8]) -> bool {
    let head = head_of(bytes);
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    (first.starts_with(b"From ") || is_header(first))
        && ["Subject:", "From:", "Date:"].iter().any(|name| head_has(head, name.as_bytes()))
}

fn head_has(head: &[u8], name: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n')
        .any(|line| line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name))
}

fn is_header(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    colon > 0 && line[..colon].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Up to the first empty line, and not for ever.
fn head_of(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(64 * 1024)];
    let ends = |end: &[u8]| bytes.windows(end.len()).position(|window| window == end);
    let end = [ends(b"\n\n"), ends(b"\r\n\r\n")].into_iter().flatten().min();
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Whether the paths of a diff have the `a/` and `b/` that git puts before them. The first pair of names decides.
fn has_prefixes(diff: &Path) -> io::Result<bool> {
    let mut before: Option<Vec<u8>> = None;
    let mut lines = Lines::open(diff)?;
    while let Some(line) = lines.next()? {
        let old = before.take();
        if let Some(rest) = line.strip_prefix(b"diff --git ") {
            return Ok(is_prefixed(rest));
        }
        if let (Some(old), Some(new)) = (old, line.strip_prefix(b"+++ ")) {
            return Ok(is_prefixed(&old) || is_prefixed(new));
        }
        before = line.strip_prefix(b"--- ").map(<[u8]>::to_vec);
    }
    Ok(true)
}

fn is_prefixed(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"\"").unwrap_or(name);
    matches!(name, [b'a' | b'b' | b'i' | b'w' | b'c' | b'o', b'/', ..])
}

/// The lines of a file, each cut at a length that no header has.
struct Lines(io::BufReader<File>);

impl Lines {
    fn open(file: &Path) -> io::Result<Lines> {
        Ok(Lines(io::BufReader::with_capacity(64 * 1024, File::open(file)?)))
    }

    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        use std::io::BufRead;
        const LONGEST: usize = 8 * 1024;
        let mut line = Vec::new();
        loop {
            let buffer = self.0.fill_buf()?;
            if buffer.is_empty() {
                return Ok((!line.is_empty()).then_some(line));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = LONGEST.saturating_sub(line.len()).min(part.len());
            line.extend_from_slice(&part[..room]);
            let used = end.map_or(part.len(), |end| end + 1);
            self.0.consume(used);
            if end.is_some() {
                return Ok(Some(line));
            }
        }
    }
}
