//! Cutting a long text into messages that Discord takes (`spec/teams.md` 5.11).

use super::message::trim_blank_lines;

/// The length of a text as Discord counts it, in UTF-16 units.
#[must_use]
pub fn discord_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Cuts a text into chunks of at most `limit` units: between paragraphs where it can, else between
/// lines, else between words, else anywhere between characters. A code block that is cut is closed
/// at the end of the chunk and opened again, in its language, in the next one. Nothing but blanks
/// at a cut is lost; a text that fits is left as it is, but for blank lines around it. A limit under 40 is taken as 40, so that a fence with its language always fits.
#[must_use]
pub fn split_discord_chunks(content: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(40);
    let content = trim_blank_lines(content);
    let content = content.as_str();
    if discord_length(content) <= limit {
        return if content.is_empty() { Vec::new() } else { vec![content.to_owned()] };
    }
    let mut cutter =
        Cutter { limit, chunks: Vec::new(), current: String::new(), fence: None, fresh: true };
    content.split('\n').for_each(|line| cutter.line(line));
    cutter.finish();
    cutter.chunks
}

/// Puts `prefix` and, where there are several, `[i/n]` before each chunk of a text, so that each
/// message with its prefix keeps the limit (`spec/teams.md` R01).
#[must_use]
pub fn number_chunks(prefix: &str, content: &str, limit: usize) -> Vec<String> {
    let whole = format!("{prefix}{content}");
    if discord_length(&whole) <= limit {
        return vec![whole];
    }
    let mut digits = 1;
    loop {
        let head = discord_length(prefix) + "[/]\n".len() + 2 * digits;
        let chunks = split_discord_chunks(content, limit.saturating_sub(head));
        let total = chunks.len();
        if total.to_string().len() <= digits {
            return chunks
                .iter()
                .enumerate()
                .map(|(index, chunk)| format!("{prefix}[{}/{total}]\n{chunk}", index + 1))
                .collect();
        }
        digits += 1;
    }
}

const FENCE: &str = "```";
/// Units of the fence that closes a block at a cut, with its line break.
const CLOSING: usize = 4;
/// A block is not opened at the end of a chunk that has less room than this.
const WORTH_OPENING: usize = 12;

struct Cutter {
    limit: usize,
    chunks: Vec<String>,
    current: String,
    /// The fence that opens the open block again.
    fence: Option<String>,
    /// Whether the chunk holds nothing but the fence that opens a block again.
    fresh: bool,
}

impl Cutter {
    fn line(&mut self, line: &str) {
        if self.fits(line) {
            return self.push(line);
        }
        if !self.fresh {
            self.cut(true);
        }
        if self.fits(line) {
            return self.push(line);
        }
        if !self.fresh {
            self.cut(false);
        }
        let mut rest = line;
        while !self.fits(rest) {
            let room = self.limit.saturating_sub(discord_length(&self.current) + CLOSING);
            let (head, tail) = rest.split_at(cut_point(rest, room));
            let inside = self.fence.is_some();
            self.push(if inside { head } else { head.trim_end() });
            self.cut(false);
            rest = if inside { tail } else { tail.trim_start() };
        }
        self.push(rest);
    }

    fn glue(&self) -> usize {
        usize::from(!self.fresh)
    }

    /// Whether a line fits, with the fence that closes the block it may leave open.
    fn fits(&self, line: &str) -> bool {
        let after = fence_after(self.fence.clone(), line);
        let opens = self.fence.is_none() && after.is_some() && !self.current.is_empty();
        let kept =
            if after.is_some() { CLOSING } else { 0 } + if opens { WORTH_OPENING } else { 0 };
        let length = discord_length(&self.current) + self.glue() + discord_length(line);
        length + kept <= self.limit
    }

    fn push(&mut self, line: &str) {
        if !self.fresh {
            self.current.push('\n');
        }
        self.fresh = false;
        self.fence = fence_after(self.fence.take(), line);
        self.current.push_str(line);
    }

    /// Ends the chunk; a paragraph that has just begun may move to the next one.
    fn cut(&mut self, at_paragraph: bool) {
        let carried = match self.last_paragraph().filter(|_| at_paragraph) {
            Some(at) => self.current.split_off(at).trim_start_matches('\n').to_owned(),
            None => String::new(),
        };
        self.close();
        if let Some(fence) = &self.fence {
            self.current = format!("{fence}\n");
        }
        self.fresh = carried.is_empty();
        self.current.push_str(&carried);
    }

    /// Where the last paragraph of the chunk begins, if both it and what stands before it are
    /// outside of blocks, and cutting there leaves at least half of the chunk.
    fn last_paragraph(&self) -> Option<usize> {
        let at = self.current.rfind("\n\n").filter(|_| self.fence.is_none())?;
        let (head, tail) = self.current.split_at(at);
        let plain = !tail.contains(FENCE) && discord_length(head) >= self.limit / 2;
        plain.then_some(at)
    }

    fn close(&mut self) {
        let mut chunk = std::mem::take(&mut self.current);
        chunk.truncate(chunk.trim_end().len());
        if self.fence.is_some() {
            chunk.push('\n');
            chunk.push_str(FENCE);
        }
        let chunk = chunk.trim_matches('\n');
        if !chunk.trim().is_empty() {
            self.chunks.push(chunk.to_owned());
        }
    }

    fn finish(&mut self) {
        if !self.fresh {
            self.close();
        }
    }
}

/// The block that is open after a line: every fence opens or closes one, as Discord reads it.
fn fence_after(mut fence: Option<String>, line: &str) -> Option<String> {
    let mut rest = line;
    while let Some(at) = rest.find(FENCE) {
        rest = rest.get(at + FENCE.len()..).unwrap_or_default();
        fence = match fence {
            Some(_) => None,
            None => Some(reopening(rest)),
        };
    }
    fence
}

/// The fence that opens a block again: with its language, if what follows the fence is one.
fn reopening(after: &str) -> String {
    let language = after.trim_end();
    if is_language(language) { format!("{FENCE}{language}") } else { FENCE.to_owned() }
}

/// Whether a text can be the language of a block; no text can.
fn is_language(text: &str) -> bool {
    text.len() <= 12
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+#-_.".contains(letter))
}

/// The byte at which to cut a line that is too long: after the last blank that leaves at least half,
/// else at the last character that fits; never inside a fence.
fn cut_point(line: &str, room: usize) -> usize {
    let mut units = 0;
    let mut end = 0;
    let mut blank = None;
    for (at, letter) in line.char_indices() {
        units += letter.len_utf16();
        if units > room {
            break;
        }
        end = at + letter.len_utf8();
        if letter.is_whitespace() && units >= room / 2 {
            blank = Some(end);
        }
    }
    if let Some(blank) = blank {
        return blank;
    }
    let (head, tail) = line.split_at(end);
    // A fence and its language stay together, and so do the marks of a fence.
    let fence =
        head.rfind(FENCE).filter(|at| head.get(at + FENCE.len()..).is_some_and(is_language));
    if let Some(run) =
        fence.map(|at| head.get(..at).unwrap_or_default().trim_end_matches('`').len())
        && run > 0
    {
        end = run;
    } else if head.ends_with('`') && tail.starts_with('`') {
        let run = head.trim_end_matches('`').len();
        end = if run > 0 { run } else { end - end % FENCE.len() };
    }
    end.max(line.chars().next().map_or(0, char::len_utf8))
}
