//! Git's files read and written by this process, without starting git.
//!
//! A run asks git a hundred small questions. Starting a process for each costs more than all else the program does
//! between two agents, so the plain ones are answered here: objects, refs kept as files, and the index and files of our
//! own working copies. Everything that is not plain (reftable, shallow history, submodules that are checked out, an index
//! that another program extended, names that git would refuse, damaged objects) is answered with [`AskGit`], and the
//! caller starts git as before. So git itself decides in every case of doubt, and its error messages stay.
//!
//! No configuration is read here, and nothing configured can run.

mod checkout;
mod index;
mod objects;
mod refs;
mod status;
#[cfg(test)]
mod tests;
mod writing;

pub(super) use checkout::{NewFiles, move_index, move_to, take_in};
pub(super) use index::CopyIndex;
pub(super) use objects::{ObjectKind, Objects};
pub(super) use refs::{RefChange, RefLog, Refs, is_ref_name};
pub(super) use status::{DifferenceKind, status};

/// Not a plain case: the caller has to ask git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskGit;

pub(super) type Native<T> = Result<T, AskGit>;

/// For errors that git will name better.
fn ask<E>(_: E) -> AskGit {
    AskGit
}

/// The hash that names objects in a repository, by the name git has for it.
fn hash_kind(format: &str) -> Native<gix_hash::Kind> {
    match format {
        "sha1" => Ok(gix_hash::Kind::Sha1),
        "sha256" => Ok(gix_hash::Kind::Sha256),
        _ => Err(AskGit),
    }
}
