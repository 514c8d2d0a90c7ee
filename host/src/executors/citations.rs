//! Looks up what reviewers cite in the tree they reviewed (D-05).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use archeflow_core::model::{Answer, AnswerBody, Citation, Finding};
use archeflow_core::rules::identity;
use archeflow_core::text::unquote_path;

use crate::git::content::CommitFiles;
use crate::git::{ObjectId, Repo, runner};

/// Lines around the cited one in which a quotation may be.
const NEAR: usize = 10;

/// Files that citations are looked up in.
pub(crate) trait CitedFiles {
    fn load(&mut self, paths: &[&[u8]]) -> Result<(), runner::Error>;
    fn line_count(&mut self, path: &[u8]) -> Result<Option<usize>, runner::Error>;
    fn line(&mut self, path: &[u8], number: usize) -> Result<Option<Vec<u8>>, runner::Error>;
    /// Whether a line of the file is as asked, in one pass.
    fn any_line(&mut self, path: &[u8], is: &dyn Fn(&[u8]) -> bool) -> Result<bool, runner::Error>;
}

impl CitedFiles for CommitFiles<'_> {
    fn load(&mut self, paths: &[&[u8]]) -> Result<(), runner::Error> {
        CommitFiles::load(self, paths)
    }

    fn line_count(&mut self, path: &[u8]) -> Result<Option<usize>, runner::Error> {
        CommitFiles::line_count(self, path)
    }

    fn line(&mut self, path: &[u8], number: usize) -> Result<Option<Vec<u8>>, runner::Error> {
        CommitFiles::line(self, path, number)
    }

    fn any_line(&mut self, path: &[u8], is: &dyn Fn(&[u8]) -> bool) -> Result<bool, runner::Error> {
        Ok(self.bytes(path)?.is_some_and(|bytes| bytes.split(|byte| *byte == b'\n').any(is)))
    }
}

/// The files of a folder as they are.
pub(crate) struct FolderFiles {
    folder: PathBuf,
    read: BTreeMap<Vec<u8>, Option<Vec<Vec<u8>>>>,
}

/// A longer file is not looked into.
const LONGEST: u64 = 10_000_000;

impl FolderFiles {
    pub(crate) fn open(folder: &Path) -> FolderFiles {
        FolderFiles { folder: folder.to_owned(), read: BTreeMap::new() }
    }

    fn lines(&mut self, path: &[u8]) -> Option<&Vec<Vec<u8>>> {
        let folder = &self.folder;
        let read = || {
            let name = std::str::from_utf8(path).ok()?;
            let inside =
                Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
            let file = folder.join(name);
            let facts = std::fs::symlink_metadata(&file).ok()?;
            if !inside || !facts.is_file() || facts.len() > LONGEST {
                return None;
            }
            let bytes = std::fs::read(&file).ok()?;
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            Some(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
        };
        self.read.entry(path.to_vec()).or_insert_with(read).as_ref()
    }
}

impl CitedFiles for FolderFiles {
    fn load(&mut self, _paths: &[&[u8]]) -> Result<(), runner::Error> {
        Ok(())
    }

    fn line_count(&mut self, path: &[u8]) -> Result<Option<usize>, runner::Error> {
        Ok(self.lines(path).map(Vec::len))
    }

    fn line(&mut self, path: &[u8], number: usize) -> Result<Option<Vec<u8>>, runner::Error> {
        Ok(self.lines(path).and_then(|lines| lines.get(number.checked_sub(1)?)).cloned())
    }

    fn any_line(&mut self, path: &[u8], is: &dyn Fn(&[u8]) -> bool) -> Result<bool, runner::Error> {
        Ok(self.lines(path).is_some_and(|lines| lines.iter().any(|line| is(line))))
    }
}

/// Files that are in memory.
struct MemoryFiles<'a>(&'a BTreeMap<String, String>);

impl MemoryFiles<'_> {
    fn text(&self, path: &[u8]) -> Option<&str> {
        std::str::from_utf8(path).ok().and_then(|path| self.0.get(path)).map(String::as_str)
    }
}

impl CitedFiles for MemoryFiles<'_> {
    fn load(&mut self, _paths: &[&[u8]]) -> Result<(), runner::Error> {
        Ok(())
    }

    fn line_count(&mut self, path: &[u8]) -> Result<Option<usize>, runner::Error> {
        Ok(self.text(path).map(|text| text.lines().count()))
    }

    fn line(&mut self, path: &[u8], number: usize) -> Result<Option<Vec<u8>>, runner::Error> {
        let line = self.text(path).and_then(|text| text.lines().nth(number.checked_sub(1)?));
        Ok(line.map(|line| line.as_bytes().to_vec()))
    }

    fn any_line(&mut self, path: &[u8], is: &dyn Fn(&[u8]) -> bool) -> Result<bool, runner::Error> {
        Ok(self.text(path).is_some_and(|text| text.lines().any(|line| is(line.as_bytes()))))
    }
}

/// Looks up what is cited in files that are in memory, where there is neither commit nor folder.
pub(crate) fn look_up_in_memory(
    files: &BTreeMap<String, String>,
    changed: &[String],
    findings: &mut [Finding],
) {
    // Nothing is read, so nothing can fail.
    let _ = look_up(&mut MemoryFiles(files), changed, findings);
}

/// Marks every citation of a review as found or not, and every finding with the code it is about.
pub(crate) fn resolve(
    repo: &Repo,
    commit: &str,
    changed: &[String],
    answer: &mut Answer,
) -> Result<(), runner::Error> {
    let AnswerBody::Review(review) = &mut answer.said else { return Ok(()) };
    if review.findings.iter().all(|finding| finding.citations.is_empty()) {
        return Ok(());
    }
    let Ok(commit) = ObjectId::parse(commit.as_bytes()) else { return Ok(()) };
    look_up(&mut CommitFiles::open(repo, &commit), changed, &mut review.findings)
}

/// The same, in any files.
pub(crate) fn look_up(
    tree: &mut impl CitedFiles,
    changed: &[String],
    findings: &mut [Finding],
) -> Result<(), runner::Error> {
    let cited = |findings: &[Finding]| {
        let cited = findings.iter().flat_map(|finding| &finding.citations);
        let mut wanted: Vec<Vec<u8>> = cited.map(|citation| path_of(&citation.file)).collect();
        wanted.sort();
        wanted.dedup();
        wanted
    };
    let wanted = cited(findings);
    tree.load(&wanted.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let mut renamed = false;
    for path in &wanted {
        if tree.line_count(path)?.is_none()
            && let Some(whole) = ending_so(path, changed)
        {
            rename(findings, path, whole);
            renamed = true;
        }
    }
    if renamed {
        let wanted = cited(findings);
        tree.load(&wanted.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
    for finding in findings {
        let text = format!("{} {} {}", finding.description, finding.evidence, finding.fix);
        let claim = identity::words(&text);
        // Words of another script can't be in the code.
        let comparable = claim.iter().any(|word| word.is_ascii());
        for citation in &mut finding.citations {
            let there = holds(tree, citation)?;
            citation.holds = Some(there);
            if there && citation.line > 0 && comparable {
                let text = code(tree, &path_of(&citation.file), citation.line as usize, None)?;
                let cited = identity::words(&text.unwrap_or_default());
                citation.related = Some(!claim.is_disjoint(&cited));
            }
        }
        anchor(tree, finding)?;
    }
    Ok(())
}

/// Most files of a folder that are looked at to complete a name.
const MOST_FILES: usize = 20_000;

/// The same in the files of a folder as they are, where there is no commit.
pub fn look_up_in_folder(folder: &Path, findings: &mut [Finding]) -> Result<(), runner::Error> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&inside)).into_iter().flatten().flatten() {
            let path = inside.join(entry.file_name());
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && entry.file_name() != ".git" {
                folders.push(path);
            } else if kind.is_ok_and(|kind| kind.is_file()) && files.len() < MOST_FILES {
                files.extend(path.to_str().map(str::to_owned));
            }
        }
        if files.len() >= MOST_FILES {
            break;
        }
    }
    look_up(&mut FolderFiles::open(folder), &files, findings)
}

/// The file of the change that a place means by its last part (J-04): the only one that ends so.
fn ending_so<'a>(path: &[u8], changed: &'a [String]) -> Option<&'a String> {
    let mut ending = changed.iter().filter(|file| {
        let file = path_of(file);
        !path.is_empty() && file.strip_suffix(path).is_some_and(|before| before.ends_with(b"/"))
    });
    ending.next().filter(|_| ending.next().is_none())
}

fn rename(findings: &mut [Finding], path: &[u8], whole: &str) {
    for finding in findings {
        if path_of(&finding.file) == path {
            whole.clone_into(&mut finding.file);
        }
        for citation in finding.citations.iter_mut().filter(|citation| path_of(&citation.file) == path) {
            whole.clone_into(&mut citation.file);
        }
    }
}

/// Lines with less than this say nothing by themselves: a bracket, an `else`.
const TELLING: usize = 6;

/// Marks a finding with a digest of the code it is about, so that it is known again when lines have moved.
fn anchor(tree: &mut impl CitedFiles, finding: &mut Finding) -> Result<(), runner::Error> {
    if finding.line == 0 || finding.file.is_empty() {
        return Ok(());
    }
    let quotes = finding.citations.iter().filter(|citation| citation.file == finding.file);
    let quote = quotes.filter_map(|citation| citation.quote.as_deref()).map(squeezed).find(|q| !q.is_empty());
    let text = code(tree, &path_of(&finding.file), finding.line as usize, quote.as_deref())?;
    finding.anchor =
        text.map(|text| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()).unwrap_or_default();
    Ok(())
}

/// The line that is quoted near the cited one, else the cited one; with those around it if it has no content of its own.
fn code(
    tree: &mut impl CitedFiles,
    path: &[u8],
    line: usize,
    quote: Option<&str>,
) -> Result<Option<String>, runner::Error> {
    let Some(lines) = tree.line_count(path)? else { return Ok(None) };
    if line > lines {
        return Ok(None);
    }
    let mut text = |number: usize| {
        let bytes = tree.line(path, number)?.unwrap_or_default();
        Ok::<_, runner::Error>(squeezed(&String::from_utf8_lossy(&bytes)))
    };
    let mut at = line;
    if let Some(quote) = quote {
        let near = line.saturating_sub(NEAR).max(1)..=(line + NEAR).min(lines);
        let mut near: Vec<usize> = near.collect();
        near.sort_by_key(|number| number.abs_diff(line));
        for number in near {
            if text(number)?.contains(quote) {
                at = number;
                break;
            }
        }
    }
    let own = text(at)?;
    if own.chars().filter(|c| c.is_alphanumeric()).count() >= TELLING {
        return Ok(Some(own));
    }
    let around = [at.saturating_sub(1).max(1), at, (at + 1).min(lines)];
    let around = around.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(around.join("\n")))
}

fn holds(tree: &mut impl CitedFiles, citation: &Citation) -> Result<bool, runner::Error> {
    let path = &path_of(&citation.file);
    let Some(lines) = tree.line_count(path)? else { return Ok(false) };
    let line = citation.line as usize;
    if line > lines {
        return Ok(false);
    }
    let Some(quote) = citation.quote.as_deref().map(squeezed).filter(|quote| !quote.is_empty()) else {
        return Ok(true);
    };
    if line == 0 {
        return tree.any_line(path, &|text| squeezed(&String::from_utf8_lossy(text)).contains(&quote));
    }
    for number in line.saturating_sub(NEAR).max(1)..=(line + NEAR).min(lines) {
        let text = tree.line(path, number)?.unwrap_or_default();
        if squeezed(&String::from_utf8_lossy(&text)).contains(&quote) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The bytes of a path as the log writes it.
fn path_of(text: &str) -> Vec<u8> {
    unquote_path(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// White space does not make a quotation wrong.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
