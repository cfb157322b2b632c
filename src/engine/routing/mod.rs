//! Who is asked next (`spec/teams.md` 7.6).
