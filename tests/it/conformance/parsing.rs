use super::Subject;
pub(crate) const SUBJECTS: &[Subject] = &[];
