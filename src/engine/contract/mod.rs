//! The result contract (`spec/teams.md` 8.1 and 8.2).
