//! Setting values in the configuration on behalf of a command, so that they can be taken back: comments and
//! everything else a person wrote stay.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::edit::{self, EditError};
use super::error::ConfigError;
use super::open::{parse, read};
use super::{DISCORD_FILE, RUNTIME_FILE};
use crate::domain::config::{DiscordConfig, RuntimeConfig};
use crate::platform::files;

/// A value of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// One word.
    Word(String),
    /// A list of words.
    List(Vec<String>),
    /// Entries of `checks` or of `prepare`.
    Commands(Vec<CommandEntry>),
}

/// An entry of `checks` or of `prepare`, as far as a command writes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEntry {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What decides about what is prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// One of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigFile {
    /// `discord_agents_config.yaml`.
    Discord,
    /// `team_runtime.yaml`.
    Runtime,
}

impl ConfigFile {
    /// Both.
    pub const ALL: [ConfigFile; 2] = [ConfigFile::Discord, ConfigFile::Runtime];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ConfigFile::Discord => DISCORD_FILE,
            ConfigFile::Runtime => RUNTIME_FILE,
        }
    }

    fn check(self, path: &Path, text: &str) -> Result<(), ConfigError> {
        match self {
            ConfigFile::Discord => parse(path, text, DiscordConfig::check).map(|_| ()),
            ConfigFile::Runtime => parse(path, text, RuntimeConfig::check).map(|_| ()),
        }
    }
}

/// How a file was changed, and what it was before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileChange {
    /// The whole text before; gone once somebody else edited the file between two changes of ours.
    text: Option<String>,
    /// The digest of the text that we wrote last.
    written: String,
    /// The digest of the text before that: it is still there where we were cut off before we wrote.
    on: String,
    /// Keys that were set: the value before (none where the key was not there), and ours.
    keys: BTreeMap<String, (Option<Setting>, Setting)>,
}

/// A change that is worked out and not yet written.
#[derive(Debug)]
pub struct Change {
    file: ConfigFile,
    text: String,
    /// What to remember before it is written.
    pub changed: FileChange,
    /// The keys that get another value.
    pub keys: Vec<String>,
}

/// Works out the change that gives a file these values; `None` where it has them. `earlier` is what was
/// remembered of former changes.
pub fn plan(
    root: &Path,
    file: ConfigFile,
    settings: &[(&str, Setting)],
    earlier: Option<FileChange>,
) -> Result<Option<Change>, EditError> {
    let path = root.join(file.name());
    let text = files::read_text(&path)?;
    file.check(&path, &text)?;
    let mut changed = match earlier {
        Some(mut earlier) => {
            // A change that was remembered and never written leaves the text of before.
            if !earlier.left(&text) {
                earlier.text = None;
            }
            earlier
        }
        None => FileChange { text: Some(text.clone()), ..FileChange::default() },
    };
    let mut edited = text.clone();
    let mut keys = Vec::new();
    for (key, value) in settings {
        let before = value_of(&edited, key);
        if before.as_ref() == Some(value) {
            continue;
        }
        edited = set(&edited, key, value)
            .ok_or_else(|| EditError::Unsafe { key: (*key).to_owned(), path: path.clone() })?;
        changed
            .keys
            .entry((*key).to_owned())
            .and_modify(|(_, ours)| *ours = value.clone())
            .or_insert((before, value.clone()));
        keys.push((*key).to_owned());
    }
    if keys.is_empty() {
        return Ok(None);
    }
    file.check(&path, &edited)?;
    changed.on = digest(&text);
    changed.written = digest(&edited);
    Ok(Some(Change { file, text: edited, changed, keys }))
}

impl FileChange {
    /// Whether a text is as we left it, the last change written or not.
    fn left(&self, text: &str) -> bool {
        let digest = digest(text);
        self.written == digest || self.on == digest || self.text.as_deref() == Some(text)
    }
}

impl Change {
    /// Writes the file.
    pub fn write(&self, root: &Path) -> Result<(), EditError> {
        Ok(files::rewrite_durable(&root.join(self.file.name()), &self.text)?)
    }
}

/// What could not be taken back because somebody gave it another value since.
pub type Kept = Vec<String>;

/// Takes the changes of a file back: all of its text where nobody else touched it, else each value that is
/// still ours.
pub fn take_back(root: &Path, file: ConfigFile, changed: &FileChange) -> Result<Kept, EditError> {
    let _alone = edit::alone(root)?;
    let path = root.join(file.name());
    let Some(text) = files::read_text_if_present(&path)? else {
        return Ok(Vec::new());
    };
    if let Some(before) = &changed.text
        && changed.left(&text)
    {
        if &text != before {
            files::rewrite_durable(&path, before)?;
        }
        return Ok(Vec::new());
    }
    let mut kept = Vec::new();
    let mut edited = text.clone();
    for (key, (before, ours)) in &changed.keys {
        if value_of(&edited, key).as_ref() != Some(ours) {
            kept.push(key.clone());
            continue;
        }
        let back = match before {
            Some(value) => set(&edited, key, value),
            None if key.contains('.') => edit::clear(&edited, &key.split('.').collect::<Vec<_>>()),
            None => edit::unset(&edited, key),
        };
        match back.filter(|text| file.check(&path, text).is_ok()) {
            Some(text) => edited = text,
            None => kept.push(key.clone()),
        }
    }
    if edited != text {
        file.check(&path, &edited)?;
        files::rewrite_durable(&path, &edited)?;
    }
    Ok(kept)
}

/// Reads a file as what it says now.
pub fn discord(root: &Path) -> Result<DiscordConfig, ConfigError> {
    read(&root.join(DISCORD_FILE), DiscordConfig::check)
}

fn set(text: &str, key: &str, value: &Setting) -> Option<String> {
    let words: Vec<&str> = key.split('.').collect();
    match value {
        Setting::Word(word) => edit::set_scalar(text, &words, word),
        Setting::List(list) => edit::set_list(text, &words, list),
        Setting::Commands(checks) => {
            edit::set_entries(text, key, &serde_yaml::to_value(checks).ok()?)
        }
    }
}

/// The value of a key; numbers count as the words that they are written in.
fn value_of(text: &str, key: &str) -> Option<Setting> {
    use serde_yaml::Value;
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => None,
    };
    let root: Value = serde_yaml::from_str(text).ok()?;
    let mut found = &root;
    for part in key.split('.') {
        found = found.get(part)?;
    }
    if let Value::Sequence(items) = found {
        let words = items.iter().map(word).collect::<Option<Vec<_>>>().map(Setting::List);
        let commands = || serde_yaml::from_value(found.clone()).ok().map(Setting::Commands);
        return words.or_else(commands);
    }
    word(found).map(Setting::Word)
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::init::{Options, init};

    fn word(text: &str) -> Setting {
        Setting::Word(text.to_owned())
    }

    fn list(words: &[&str]) -> Setting {
        Setting::List(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn text(root: &Path, file: ConfigFile) -> String {
        files::read_text(&root.join(file.name())).unwrap()
    }

    #[test]
    fn values_are_set_beside_comments_and_the_text_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        init(root, &Options::default()).unwrap();
        let before = ConfigFile::ALL.map(|file| text(root, file));
        let discord = [
            ("guild_id", word("1234567890123456789")),
            ("relay_channel_id", word("22")),
            ("startup_channel_id", word("33")),
        ];
        let change = plan(root, ConfigFile::Discord, &discord, None).unwrap().unwrap();
        change.write(root).unwrap();
        let runtime = [("people.owner", word("42")), ("people.approve.roles", list(&["7"]))];
        let other = plan(root, ConfigFile::Runtime, &runtime, None).unwrap().unwrap();
        other.write(root).unwrap();
        let workspace = crate::workspace::load(root).unwrap();
        assert_eq!(workspace.discord.guild_id.unwrap().0, 1_234_567_890_123_456_789);
        assert_eq!(workspace.channels().unwrap().report.0, 33);
        assert_eq!(workspace.runtime.people.owner.unwrap().0, 42);
        assert_eq!(workspace.runtime.people.approve.roles.len(), 1);
        assert!(text(root, ConfigFile::Discord).contains("# With `voice: bots`"));
        let again = plan(root, ConfigFile::Discord, &discord, Some(change.changed.clone()));
        assert!(again.unwrap().is_none(), "a second time changes nothing");
        assert!(take_back(root, ConfigFile::Discord, &change.changed).unwrap().is_empty());
        assert!(take_back(root, ConfigFile::Runtime, &other.changed).unwrap().is_empty());
        assert_eq!(ConfigFile::ALL.map(|file| text(root, file)), before);
    }

    #[test]
    fn checks_are_written_as_people_write_them_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        init(root, &Options::default()).unwrap();
        let command = ["sh", "-c", "a: b # c", "1"].map(str::to_owned).to_vec();
        let entry = |name: &str| CommandEntry {
            name: name.to_owned(),
            command: command.clone(),
            files: Vec::new(),
        };
        let checks = Setting::Commands(vec![entry("tests"), entry("more")]);
        let settings = [("checks", checks)];
        let change = plan(root, ConfigFile::Runtime, &settings, None).unwrap().unwrap();
        change.write(root).unwrap();
        let written = text(root, ConfigFile::Runtime);
        assert!(
            written.contains("\nchecks:\n  - name: tests\n    command: [sh, \"-c\", "),
            "{written}"
        );
        assert!(written.contains("#    output_limit_kb: 1024"));
        let runtime = crate::workspace::load(root).unwrap().runtime;
        assert_eq!(runtime.checks[1].command.as_slice(), command);
        // Beside somebody else's edit, too.
        let edited = written.replace("language: en", "language: ko");
        files::write(&root.join(RUNTIME_FILE), edited).unwrap();
        assert!(take_back(root, ConfigFile::Runtime, &change.changed).unwrap().is_empty());
        let runtime = crate::workspace::load(root).unwrap().runtime;
        assert_eq!((runtime.checks.len(), runtime.language.as_str()), (0, "ko"));
    }

    #[test]
    fn what_a_person_edited_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        init(root, &Options::default()).unwrap();
        let path = root.join(DISCORD_FILE);
        let settings = [
            ("guild_id", word("12")),
            ("relay_channel_id", word("22")),
            ("report_channel_id", word("44")),
        ];
        let change = plan(root, ConfigFile::Discord, &settings, None).unwrap().unwrap();
        change.write(root).unwrap();
        let edited = text(root, ConfigFile::Discord)
            .replace("\"22\"", "\"99\"")
            .replace("trusted_bot_ids: []", "trusted_bot_ids: [\"5\"]");
        files::write(&path, edited).unwrap();
        // A later change does not bring back a text that the person never left.
        let more = [("startup_channel_id", word("33"))];
        let change = plan(root, ConfigFile::Discord, &more, Some(change.changed)).unwrap().unwrap();
        change.write(root).unwrap();
        let kept = take_back(root, ConfigFile::Discord, &change.changed).unwrap();
        assert_eq!(kept, ["relay_channel_id"]);
        let config = discord(root).unwrap();
        assert_eq!(config.guild_id.unwrap().0, 111_111_111_111_111_111);
        assert_eq!(config.relay_channel_id.unwrap().0, 99);
        assert_eq!((config.startup_channel_id, config.report_channel_id), (None, None));
        assert_eq!(config.trusted_bot_ids.len(), 1);
    }

    #[test]
    fn a_second_change_that_was_cut_off_forgets_nothing_of_before_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        init(root, &Options::default()).unwrap();
        let before = text(root, ConfigFile::Discord);
        let first = [("guild_id", word("12"))];
        let change = plan(root, ConfigFile::Discord, &first, None).unwrap().unwrap();
        change.write(root).unwrap();
        let second = [("guild_id", word("12")), ("relay_channel_id", word("22"))];
        let cut = plan(root, ConfigFile::Discord, &second, Some(change.changed)).unwrap().unwrap();
        let again = plan(root, ConfigFile::Discord, &second, Some(cut.changed)).unwrap().unwrap();
        again.write(root).unwrap();
        assert!(take_back(root, ConfigFile::Discord, &again.changed).unwrap().is_empty());
        assert_eq!(text(root, ConfigFile::Discord), before);
    }

    #[test]
    fn a_change_that_was_cut_off_before_it_was_written_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        init(root, &Options::default()).unwrap();
        let before = text(root, ConfigFile::Discord);
        let settings = [("guild_id", word("12"))];
        let change = plan(root, ConfigFile::Discord, &settings, None).unwrap().unwrap();
        assert!(take_back(root, ConfigFile::Discord, &change.changed).unwrap().is_empty());
        assert_eq!(text(root, ConfigFile::Discord), before);
        // And the next attempt still knows the text of before.
        let again = plan(root, ConfigFile::Discord, &settings, Some(change.changed)).unwrap();
        let again = again.unwrap();
        again.write(root).unwrap();
        take_back(root, ConfigFile::Discord, &again.changed).unwrap();
        assert_eq!(text(root, ConfigFile::Discord), before);
    }
}
