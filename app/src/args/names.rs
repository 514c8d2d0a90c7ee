//! What could have been meant by a name that is not there.

use std::ffi::OsString;

use clap::Command;
use clap::error::ErrorKind;

/// The names that are known where one was not, for an error of that kind. All commands are built again for it, so not for
/// every kind: to show the version is an error as well.
pub(super) fn known(
    root: impl FnOnce() -> Command,
    arguments: &[OsString],
    kind: ErrorKind,
) -> Option<String> {
    if !matches!(kind, ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument) {
        return None;
    }
    let root = root();
    let mut place = &root;
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        place = place.find_subcommand(word).unwrap_or(place);
    }
    let names: Vec<String> = if kind == ErrorKind::InvalidSubcommand {
        let commands = place.get_subcommands().filter(|command| !command.is_hide_set());
        commands.map(|command| command.get_name().to_owned()).collect()
    } else {
        let options = place.get_arguments().filter(|option| !option.is_hide_set());
        options.filter_map(|option| option.get_long()).map(|name| format!("--{name}")).collect()
    };
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_those_there_are() {
        for (line, wanted) in [
            ("archeflow frob", Some("run, ")),
            ("archeflow sprint frob", Some("add, list, import, approve, ")),
            ("archeflow sprint add shop x --frob", Some("--id, --priority, --estimate, --after")),
            ("archeflow loop start", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let kind = super::super::tried(&arguments).map_or_else(|error| error.kind(), |_| ErrorKind::Io);
            let found = known(super::super::command, &arguments, kind);
            assert_eq!(found.is_some(), wanted.is_some(), "{line}: {found:?}");
            let shown = found.unwrap_or_default();
            assert!(shown.contains(wanted.unwrap_or_default()), "{line}: {shown}");
            assert!(!shown.contains("__"), "{line}: what is hidden stays so: {shown}");
        }
    }
}
