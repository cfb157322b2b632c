//! Values that do not parse when they are wrong.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

macro_rules! checked_text {
    ($($(#[$doc:meta])* $name:ident, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text as it was written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

checked_text! {
    /// A path in the project.
    ProjectPath, |text| {
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if text.split('/').all(plain) {
            Ok(())
        } else {
            Err(format!("expected a path in the project such as \".mcp.json\", found {text:?}"))
        }
    };
    /// A SHA-256 in hexadecimal digits.
    ContentHash, |text| {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(digit) {
            Ok(())
        } else {
            Err(format!("expected the 64 digits that `sha256sum` prints, found {text:?}"))
        }
    };
    /// A time of day on a 24-hour clock, two digits each.
    CutoffTime, |text| {
        let digits = |part: &str, below: u32| {
            part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())
                && part.parse::<u32>().is_ok_and(|n| n < below)
        };
        match text.split_once(':') {
            Some((hour, minute)) if digits(hour, 24) && digits(minute, 60) => Ok(()),
            Some(_) | None => Err(format!("expected a time of day such as \"22:00\", found {text:?}")),
        }
    };
    /// The name of an environment variable.
    EnvName, |text| {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if first && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            Ok(())
        } else {
            // The value itself is not shown: people paste the secret here instead of its name.
            Err("expected the name of an environment variable such as TEAMS_DISCORD_TOKEN, \
                 never the secret itself".to_owned())
        }
    };
    /// A folder of the project that git ignores and that checks are lent; without a slash at its end.
    CarriedFolder, |text| {
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && part != ".git";
        if !text.split('/').all(plain) {
            return Err(format!(
                "expected a folder in the project such as .venv or web/node_modules, found {text:?}"
            ));
        }
        if text.split('/').any(is_build_folder) {
            return Err(format!(
                "{text:?} holds what a build makes: left over from another commit, it can turn a change that \
                 breaks the build green. Let the check build in its clean tree, and carry dependencies only"
            ));
        }
        Ok(())
    };
    /// A file or folder outside the project.
    OutsidePath, |text| {
        let rest = text.strip_prefix("~/").or_else(|| text.strip_prefix('/'));
        let plain = |part: &str| part != "." && part != "..";
        if rest.is_some_and(|rest| !rest.is_empty() && rest.split('/').all(plain)) {
            Ok(())
        } else {
            Err(format!("expected an absolute path such as /opt/sdk or ~/.local/share/sdk, found {text:?}"))
        }
    };
    /// A report about tests: its form and where it lies in the project.
    JunitReport, |text| {
        let path = text.strip_prefix("junit ").map(str::trim);
        if path.is_some_and(|path| ProjectPath::try_from(path.to_owned()).is_ok()) {
            Ok(())
        } else {
            Err(format!("expected `junit` and a path in the project such as \"junit build/report.xml\", found {text:?}"))
        }
    };
    /// The name of an author of commits.
    CommitName, |text| commit_text(text, "a name such as \"Build team\"");
    /// The address of an author of commits.
    CommitEmail, |text| commit_text(text, "an address such as team@example.org");
    /// The name of a line at the end of a commit message.
    TrailerName, |text| {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if plain && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic()) && text != "Request" {
            Ok(())
        } else {
            Err(format!("expected the name of a trailer such as Signed-off-by, found {text:?}"))
        }
    };
    /// What such a line says.
    TrailerText, |text| {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            Err(format!("expected one line of text, found {text:?}"))
        } else {
            Ok(())
        }
    };
    /// The name of a filter in git's attributes, such as lfs.
    FilterName, |text| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if !text.is_empty() && text.bytes().all(plain) {
            Ok(())
        } else {
            Err(format!("expected the name of a filter such as lfs, found {text:?}"))
        }
    };
    /// The name of a git branch.
    BranchName, |text| {
        let bad = text.is_empty()
            || text.starts_with(['-', '/', '.'])
            || text.ends_with(['/', '.'])
            || text.ends_with(".lock")
            || text.contains("..")
            || text.contains("@{")
            || text.contains("//")
            || text.chars().any(|c| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c));
        if bad { Err(format!("expected the name of a branch such as main, found {text:?}")) } else { Ok(()) }
    };
}

impl JunitReport {
    /// Where it lies, relative to the project.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.strip_prefix("junit ").unwrap_or(&self.0).trim()
    }
}

/// Whether a folder, by its name, holds what builds make.
#[must_use]
pub fn is_build_folder(path: &str) -> bool {
    const NAMES: [&str; 12] = [
        "target",
        "build",
        "_build",
        "dist",
        "out",
        "obj",
        "__pycache__",
        ".next",
        ".nuxt",
        ".gradle",
        ".pytest_cache",
        ".turbo",
    ];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    NAMES.contains(&name) || name.starts_with("cmake-build-") || name.starts_with("bazel-")
}

/// Whether a variable's name says that its value is a secret.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    const ENDS: [&str; 7] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "_KEY", "CREDENTIAL", "CREDENTIALS"];
    let name = name.to_ascii_uppercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

impl Default for CommitName {
    fn default() -> Self {
        Self("teams".to_owned())
    }
}

impl Default for CommitEmail {
    fn default() -> Self {
        Self("teams@localhost".to_owned())
    }
}

/// What git takes as a name or an address: it drops the rest in silence.
fn commit_text(text: &str, wanted: &str) -> Result<(), String> {
    let bad = |c: char| c.is_control() || "<>".contains(c);
    let edge = |c: char| c.is_whitespace() || ".,:;\"'\\".contains(c);
    if text.is_empty() || text.chars().any(bad) || text.starts_with(edge) || text.ends_with(edge) {
        return Err(format!("expected {wanted}, found {text:?}"));
    }
    Ok(())
}

/// Minutes between the slots of the grid: 1 to 10080, a week. Zero is refused rather than read as 180.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct IntervalMinutes(u32);

impl IntervalMinutes {
    /// The minutes.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for IntervalMinutes {
    fn default() -> Self {
        Self(180)
    }
}

impl TryFrom<i64> for IntervalMinutes {
    type Error = String;
    fn try_from(minutes: i64) -> Result<Self, String> {
        u32::try_from(minutes)
            .ok()
            .filter(|minutes| (1..=10_080).contains(minutes))
            .map(Self)
            .ok_or_else(|| format!("expected 1 to 10080 minutes, found {minutes}"))
    }
}

impl From<IntervalMinutes> for i64 {
    fn from(value: IntervalMinutes) -> i64 {
        i64::from(value.0)
    }
}

/// A whole number above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u64")]
pub struct Positive(NonZeroU64);

impl Positive {
    /// `number`, or 1 for zero.
    #[must_use]
    pub const fn new(number: u64) -> Positive {
        match NonZeroU64::new(number) {
            Some(number) => Positive(number),
            None => Positive(NonZeroU64::MIN),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The number, cut to what fits 32 bits.
    #[must_use]
    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0.get()).unwrap_or(u32::MAX)
    }

    /// The number, cut to what fits an index.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0.get()).unwrap_or(usize::MAX)
    }
}

impl TryFrom<i64> for Positive {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        u64::try_from(number)
            .ok()
            .and_then(NonZeroU64::new)
            .map(Self)
            .ok_or_else(|| format!("expected a whole number above 0, found {number}"))
    }
}

impl From<Positive> for u64 {
    fn from(value: Positive) -> u64 {
        value.0.get()
    }
}

/// A time zone by its IANA name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(pub chrono_tz::Tz);

impl Default for Zone {
    fn default() -> Self {
        Self(chrono_tz::Asia::Seoul)
    }
}

impl TryFrom<String> for Zone {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("expected a time zone such as Asia/Seoul, found {text:?}"))
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> String {
        zone.0.name().to_owned()
    }
}

/// A program and its arguments. A list, never a line: nothing here meets a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Argv(Vec<String>);

impl Argv {
    /// The program and its arguments; the program is always there.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for Argv {
    type Error = String;
    fn try_from(words: Vec<String>) -> Result<Self, String> {
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("expected a list with a program, such as [\"make\", \"test\"]".to_owned());
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("an argument cannot hold a NUL character".to_owned());
        }
        Ok(Self(words))
    }
}

impl From<Argv> for Vec<String> {
    fn from(argv: Argv) -> Vec<String> {
        argv.0
    }
}
