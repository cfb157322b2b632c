//! Paths as they stand in records and messages, which are text: a byte that is no text is written `\xE9`, and so is a
//! backslash that would read like the beginning of one. Whatever a path is called, its name leads back to it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Hexadecimal digits of a byte.
const DIGITS: usize = 2;

/// The name of a path.
pub(super) fn name_of(path: &[u8]) -> String {
    let mut name = String::new();
    for chunk in path.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\\') {
            let (before, from) = rest.split_at(at);
            name.push_str(before);
            name.push_str(if escaped(from).is_some() { r"\x5C" } else { r"\" });
            rest = &from[1..];
        }
        name.push_str(rest);
        name.extend(chunk.invalid().iter().map(|byte| format!(r"\x{byte:02X}")));
    }
    name
}

/// The path of a name.
pub(super) fn path_of(name: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        bytes.extend(before.as_bytes());
        let (byte, length) = escaped(from).map_or((b'\\', 1), |byte| (byte, r"\x".len() + DIGITS));
        bytes.push(byte);
        rest = &from[length..];
    }
    bytes.extend(rest.as_bytes());
    PathBuf::from(OsString::from_vec(bytes))
}

/// Paths in a record, by their names.
pub(super) mod list {
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{name_of, path_of};

    pub(in crate::git) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let names = paths.iter().map(|path| name_of(path.as_os_str().as_bytes()));
        names.collect::<Vec<_>>().serialize(to)
    }

    pub(in crate::git) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        Ok(names.iter().map(|name| path_of(name)).collect())
    }
}

/// The byte that a text begins with in its written form.
fn escaped(text: &str) -> Option<u8> {
    let digits = text.strip_prefix(r"\x")?.get(..DIGITS)?;
    let are_digits = digits.bytes().all(|it| it.is_ascii_digit() || (b'A'..=b'F').contains(&it));
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_name_leads_back_to_its_path() {
        let paths: [(&[u8], &str); 9] = [
            (b"src/a b\n.rs", "src/a b\n.rs"),
            ("größe/이름".as_bytes(), "größe/이름"),
            (b"caf\xe9/\xff\xfe.txt", r"caf\xE9/\xFF\xFE.txt"),
            (br"back\slash\x", r"back\slash\x"),
            (br"\x41", r"\x5Cx41"),
            (br"\x5C", r"\x5Cx5C"),
            (br"\xe9", r"\xe9"),
            (b"\\\xe9\\x4\xe9", r"\\xE9\x4\xE9"),
            (b"\\x\xe9", r"\x\xE9"),
        ];
        for (path, name) in paths {
            assert_eq!(name_of(path), name);
            assert_eq!(path_of(name).as_os_str().as_bytes(), path, "{name}");
        }
    }
}
