//! `--format F --output FILE`, repeatable: which documents a review writes, and where. An `--output` belongs to the
//! `--format` before it, so the order on the command line matters, and clap's derived structs do not keep it.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The two options as clap sees them.
#[derive(Debug, Args)]
struct DocumentOptions {
    /// Output format: terminal, markdown, json, sarif, rdjson or github; repeatable [default: terminal]
    #[arg(long, value_name = "FORMAT", add = super::complete::formats())]
    format: Vec<String>,
    /// Write the result of the preceding --format to this file; repeatable [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Vec<PathBuf>,
}

/// One document: a format by its name, `None` for the default, and a file, `None` for standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentArgs {
    pub(crate) format: Option<String>,
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct DocumentsArgs(pub(crate) Vec<DocumentArgs>);

impl Args for DocumentsArgs {
    fn augment_args(command: Command) -> Command {
        DocumentOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DocumentOptions::augment_args_for_update(command)
    }
}

impl FromArgMatches for DocumentsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DocumentsArgs, Error> {
        let options = DocumentOptions::from_arg_matches(matches)?;
        let at = |id: &str| matches.indices_of(id).map(Iterator::collect).unwrap_or_default();
        let (formats, outputs): (Vec<usize>, Vec<usize>) = (at("format"), at("output"));
        let formats = formats.into_iter().zip(options.format.into_iter().map(Word::Format));
        let outputs = outputs.into_iter().zip(options.output.into_iter().map(Word::Output));
        let mut words: Vec<(usize, Word)> = formats.chain(outputs).collect();
        words.sort_by_key(|(at, _)| *at);
        let documents = paired(words.into_iter().map(|(_, word)| word));
        documents
            .map(DocumentsArgs)
            .map_err(|why| Error::raw(ErrorKind::ArgumentConflict, format!("{why}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = DocumentsArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Word {
    Format(String),
    Output(PathBuf),
}

/// The documents, in the order of their formats. An `--output` before all formats belongs to the first one.
fn paired(words: impl Iterator<Item = Word>) -> Result<Vec<DocumentArgs>, String> {
    let mut documents: Vec<DocumentArgs> = Vec::new();
    let mut early: Option<PathBuf> = None;
    for word in words {
        match (word, documents.last_mut()) {
            (Word::Format(name), _) => {
                documents.push(DocumentArgs { format: Some(name), output: early.take() });
            }
            (Word::Output(path), Some(document)) if document.output.is_none() => document.output = Some(path),
            (Word::Output(path), None) if early.is_none() => early = Some(path),
            (Word::Output(path), _) => {
                return Err(format!("--output {} has no --format before it", path.display()));
            }
        }
    }
    if documents.is_empty() {
        documents.push(DocumentArgs { format: None, output: early });
    }
    check(&documents)?;
    Ok(documents)
}

/// One document may go to standard output, and each file holds one.
fn check(documents: &[DocumentArgs]) -> Result<(), String> {
    for (at, document) in documents.iter().enumerate() {
        if !documents.iter().take(at).any(|earlier| earlier.output == document.output) {
            continue;
        }
        let name = document.format.as_deref().unwrap_or("terminal");
        return Err(match &document.output {
            None => format!(
                "two formats for standard output: put --output <FILE> behind all but one --format (here: {name})"
            ),
            Some(path) => format!("two formats for {}: give {name} another --output", path.display()),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<String>, String> {
        let words = line.split_whitespace().collect::<Vec<_>>();
        let words = words.chunks(2).map(|pair| match pair {
            ["-f", name] => Word::Format((*name).to_owned()),
            [_, path] => Word::Output(PathBuf::from(path)),
            _ => Word::Output(PathBuf::new()),
        });
        let shown = |document: DocumentArgs| {
            let path = document.output.map_or("stdout".to_owned(), |path| path.display().to_string());
            format!("{} {path}", document.format.unwrap_or_else(|| "default".to_owned()))
        };
        paired(words).map(|documents| documents.into_iter().map(shown).collect())
    }

    #[test]
    fn u_01_an_output_belongs_to_the_format_before_it() {
        for (line, wanted) in [
            ("", vec!["default stdout"]),
            ("-o a", vec!["default a"]),
            ("-f json", vec!["json stdout"]),
            ("-f json -o a", vec!["json a"]),
            ("-o a -f json", vec!["json a"]),
            ("-f sarif -o a -f github", vec!["sarif a", "github stdout"]),
            ("-f github -f sarif -o a", vec!["github stdout", "sarif a"]),
            ("-f sarif -o a -f json -o b -f markdown -o c", vec!["sarif a", "json b", "markdown c"]),
        ] {
            assert_eq!(read(line), Ok(wanted.into_iter().map(str::to_owned).collect()), "{line}");
        }
        for (line, why) in [
            ("-f json -f sarif", "two formats for standard output"),
            ("-f json -o a -f sarif -o a", "two formats for a"),
            ("-f json -o a -o b", "--output b has no --format"),
            ("-o a -o b", "--output b has no --format"),
        ] {
            let found = read(line).err().unwrap_or_default();
            assert!(found.contains(why), "{line}: {found}");
        }
    }
}
