//! Folders of a repository with a configuration of their own, as a repository with several projects has them (U-16).
//!
//! Such a folder's `.archeflow/config.yaml` and `hooks.yaml` are laid over those of the root, and the commands they set
//! run in that folder. Archetypes, teams, workflows, lenses and domains are the root's.

use archeflow_core::settings::SettingValue;
use archeflow_core::text::shell_word;

use super::{REPOSITORY_CONFIG, REPOSITORY_HOOKS};

/// What a path of the repository is to the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderFile<'a> {
    Config { folder: &'a str },
    Hooks { folder: &'a str },
}

impl<'a> FolderFile<'a> {
    pub fn of(path: &'a str) -> Option<FolderFile<'a>> {
        let folder = |name: &str| match path.strip_suffix(name)? {
            "" => Some(""),
            folder => {
                folder.strip_suffix('/').filter(|folder| !folder.is_empty() && !folder.starts_with('/'))
            }
        };
        let config = folder(REPOSITORY_CONFIG).map(|folder| FolderFile::Config { folder });
        config.or_else(|| folder(REPOSITORY_HOOKS).map(|folder| FolderFile::Hooks { folder }))
    }

    pub fn folder(self) -> &'a str {
        match self {
            FolderFile::Config { folder } | FolderFile::Hooks { folder } => folder,
        }
    }
}

/// The path of a file of the root's configuration in this folder.
pub fn below(folder: &str, file: &str) -> String {
    if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

/// The same command, run in this folder of a tree.
pub fn command_in(folder: &str, command: &str) -> String {
    if folder.is_empty() {
        return command.to_owned();
    }
    let folder = shell_word(folder);
    // What follows the first of several commands must not run elsewhere if the folder is gone.
    if command.contains([';', '|', '&', '#', '\n']) {
        format!("cd {folder} && {{ {command}\n}}")
    } else {
        format!("cd {folder} && {command}")
    }
}

/// The same for a value that is known to be a command or a list of folders.
pub(super) fn value_in(folder: &str, value: SettingValue) -> SettingValue {
    match value {
        SettingValue::Text(command) => SettingValue::Text(command_in(folder, &command)),
        SettingValue::Names(folders) => {
            SettingValue::Names(folders.iter().map(|one| below(folder, one)).collect())
        }
        other @ (SettingValue::Switch(_)
        | SettingValue::Whole(_)
        | SettingValue::Wholes(_)
        | SettingValue::Millionths(_)
        | SettingValue::Money(_)
        | SettingValue::Word(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{FolderFile, below, command_in};

    #[test]
    fn u_16_a_file_belongs_to_the_folder_above_its_own() {
        let config = |folder| Some(FolderFile::Config { folder });
        for (path, file) in [
            (".archeflow/config.yaml", config("")),
            ("packages/a/.archeflow/config.yaml", config("packages/a")),
            ("a/.archeflow/hooks.yaml", Some(FolderFile::Hooks { folder: "a" })),
            ("/.archeflow/config.yaml", None),
            ("/a/.archeflow/config.yaml", None),
            ("a.archeflow/config.yaml", None),
            ("a/config.yaml", None),
            (".archeflow/archetypes/x.md", None),
        ] {
            assert_eq!(FolderFile::of(path), file, "{path}");
        }
        assert_eq!(below("a", ".archeflow/config.yaml"), "a/.archeflow/config.yaml");
        assert_eq!(below("", ".archeflow/config.yaml"), ".archeflow/config.yaml");
    }

    #[test]
    fn u_16_a_command_runs_in_its_folder_or_not_at_all() {
        let root = std::env::temp_dir();
        let run = |command: &str| {
            let output = std::process::Command::new("sh").arg("-c").arg(command).current_dir(&root).output();
            let output = output.expect("there is a shell");
            (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        assert_eq!(command_in("", "make test"), "make test");
        assert_eq!(command_in("packages/a", "npm test"), "cd packages/a && npm test");
        assert_eq!(command_in("two words", "npm test"), "cd 'two words' && npm test");
        for command in ["echo ran", "echo ran; true", "false || echo ran", "true & echo ran", "echo ran # it"]
        {
            assert_eq!(run(&command_in("no such folder", command)), (false, String::new()), "{command}");
            let there = root.file_name().and_then(|name| name.to_str()).expect("has a name");
            let (ok, said) = run(&command_in(&format!("../{there}"), command));
            assert!(ok && said == "ran\n", "{command}: {said}");
        }
    }
}
