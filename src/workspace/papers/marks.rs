//! Generated parts of documents that others write in as well: they stand between two marks, and nothing
//! outside of these is ever changed.

/// What an opening mark begins with; the name of the part follows.
const OPEN: &str = "<!-- teams:generated";
/// The closing mark.
const CLOSE: &str = "<!-- /teams:generated -->";

/// Why a document is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its marks do not match ({opened} opening, {closed} closing): there should be one `{OPEN} … -->` and, \
     below it, one `{CLOSE}`"
)]
pub struct BrokenMarks {
    /// Opening marks found.
    pub opened: usize,
    /// Closing marks found.
    pub closed: usize,
}

/// The document with its generated part brought up to date; `None` where it is so already. A new
/// document gets the heading; a document without marks gets the part at its end.
///
/// # Errors
/// [`BrokenMarks`] where it cannot be told which part is generated.
pub fn splice(
    old: Option<&str>,
    heading: &str,
    name: &str,
    block: &str,
) -> Result<Option<String>, BrokenMarks> {
    let part = format!("{OPEN} {name} -->\n{}\n{CLOSE}\n", block.trim_matches('\n'));
    let Some(old) = old.filter(|text| !text.trim().is_empty()) else {
        return Ok(Some(format!("# {heading}\n\n{part}")));
    };
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    let mut at = 0;
    for line in old.split_inclusive('\n') {
        let mark = line.trim();
        if mark.starts_with(OPEN) && mark.ends_with("-->") {
            opened.push(at);
        } else if mark == CLOSE {
            closed.push(at + line.len());
        }
        at += line.len();
    }
    let text = match (opened.as_slice(), closed.as_slice()) {
        ([], []) => format!("{}\n\n{part}", old.trim_end_matches('\n')),
        ([from], [to]) if from < to => format!("{}{part}{}", &old[..*from], &old[*to..]),
        (opened, closed) => {
            return Err(BrokenMarks { opened: opened.len(), closed: closed.len() });
        }
    };
    Ok((text != old).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_byte_for_byte() {
        let new = splice(None, "Sprint Plan", "plan", "one").unwrap().unwrap();
        assert_eq!(
            new,
            "# Sprint Plan\n\n<!-- teams:generated plan -->\none\n<!-- /teams:generated -->\n"
        );
        assert_eq!(splice(Some(&new), "Sprint Plan", "plan", "one"), Ok(None));
        let edited = new.replace("# Sprint Plan\n", "# Our plan\r\n\r\nby hand  \n") + "\n\tafter";
        let next = splice(Some(&edited), "Sprint Plan", "plan", "two\n").unwrap().unwrap();
        assert_eq!(next, edited.replace("one", "two"));
    }

    #[test]
    fn a_document_without_marks_gets_the_part_at_its_end() {
        let next = splice(Some("# Plan\n\nmine"), "Sprint Plan", "plan", "it").unwrap().unwrap();
        assert!(next.starts_with("# Plan\n\nmine\n\n<!-- teams:generated plan -->\nit\n"));
        assert_eq!(splice(Some(&next), "Sprint Plan", "plan", "it"), Ok(None));
    }

    #[test]
    fn marks_that_do_not_match_leave_the_document_alone() {
        let open = "<!-- teams:generated plan -->\n";
        let close = "<!-- /teams:generated -->\n";
        for broken in [
            open.to_owned(),
            close.to_owned(),
            format!("{close}{open}"),
            format!("{open}{open}{close}"),
            format!("{open}{close}{open}{close}"),
        ] {
            assert!(splice(Some(&broken), "h", "plan", "x").is_err(), "{broken}");
        }
    }
}
