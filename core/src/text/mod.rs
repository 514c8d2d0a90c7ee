//! Every filter and escape between other people's text and a reader. What an agent, a file or a person wrote may drive
//! a terminal, hide from the eye, or be read as markup; code that prints it uses the function for the destination.
//!
//! | goes to | one line | several lines |
//! |---|---|---|
//! | terminal, plain files | [`safe_line`], [`short_line`] | [`safe`], [`short_text`] |
//! | a row of cells on a screen | [`cells`] | |
//! | log of a code host's workflow | [`log_line`] | [`log_text`] |
//! | HTML | [`short_line`], then [`html`] | [`short_text`], then [`html`] |
//! | Markdown document | [`markdown`], [`code_span`], [`table_cell`] | [`code_block`] |
//! | Markdown posted on a code host | [`markdown_comment`] | [`code_block`]; [`unlinked`] for a whole document of ours |
//! | JSON on a terminal or in a workflow | | [`json`] |
//! | shell command that a person copies | [`shell_word`] | |
//! | file name, address | [`file_name`], [`identifier`] | |
//! | path of a repository, everywhere | [`quote_path`] | |
//!
//! A line of a file that must lose nothing is shown with [`revealed`] or, where columns count, [`revealed_in_columns`].
//! Text that stays inside the program is made one line by [`one_line`], and filtered when it is printed.

mod columns;
mod letters;
mod lines;
mod markup;
mod names;
pub(crate) mod nearest;
mod paths;
mod sizes;

pub use columns::{cells, fitted, padded, revealed_in_columns, width, wrapped};
pub use lines::{
    branch_name, cut, hides, is_unsafe, log_line, log_text, one_line, pad, pad_after, revealed, safe,
    safe_line, short_line, short_text,
};
pub use markup::{code_block, code_span, html, json, markdown, markdown_comment, table_cell, unlinked};
pub use names::{file_name, identifier, plain_words, shell_word};
pub use nearest::closest;
pub use paths::{path_key, quote_path, quoted_end, unescape_letters, unquote_path};
pub use sizes::byte_size;
