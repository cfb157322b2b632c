//! Cutting a long text into messages that Discord takes (`spec/teams.md` 5.11).

/// The length of a text as Discord counts it, in UTF-16 units.
#[must_use]
pub fn discord_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Cuts a text into chunks of at most `limit` units: between paragraphs where it can, else between
/// lines, else between words, else anywhere between characters. A code block that is cut is closed
/// at the end of the chunk and opened again, in its language, in the next one. Nothing but blanks
/// at a cut is lost. A limit under 16 is taken as 16, so that a fence always fits.
#[must_use]
pub fn split_discord_chunks(content: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(16);
    let content = content.trim_end();
    if discord_length(content) <= limit {
        return if content.is_empty() {
            Vec::new()
        } else {
            vec![content.to_owned()]
        };
    }
    let mut cutter = Cutter {
        limit,
        chunks: Vec::new(),
        current: String::new(),
        fence: None,
    };
    for (index, line) in content.split('\n').enumerate() {
        cutter.line(line, index == 0);
    }
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

struct Cutter {
    limit: usize,
    chunks: Vec<String>,
    current: String,
    /// The opening line of the code block that is open.
    fence: Option<String>,
}

impl Cutter {
    /// Units that are kept free to close an open block.
    fn reserve(&self) -> usize {
        if self.fence.is_some() {
            FENCE.len() + 1
        } else {
            0
        }
    }

    fn room(&self) -> usize {
        self.limit
            .saturating_sub(discord_length(&self.current) + self.reserve())
    }

    fn line(&mut self, line: &str, first: bool) {
        let opens = line.trim_start().starts_with(FENCE);
        if opens && self.fence.is_some() {
            // A closing line uses the room that was kept for it.
            self.fence = None;
            self.append(line.trim_end(), first);
            return;
        }
        if opens {
            let head: String = line.trim().chars().take(self.limit / 4).collect();
            let needed = discord_length(line) + 2 * (FENCE.len() + 1);
            if !self.current.is_empty() && needed >= self.room() {
                self.cut();
            }
            self.append(line.trim_end(), first);
            // One line that opens and closes leaves nothing open.
            let closed = line.trim().len() > FENCE.len() && line.trim().ends_with(FENCE);
            self.fence = (!closed).then_some(head);
            return;
        }
        self.append(line, first);
    }

    fn append(&mut self, line: &str, first: bool) {
        let glue = usize::from(!first);
        if discord_length(line) + glue <= self.room() {
            if !first {
                self.current.push('\n');
            }
            self.current.push_str(line);
            return;
        }
        if !self.is_fresh() {
            self.cut();
        }
        let mut rest = line;
        while discord_length(rest) > self.room() {
            let at = cut_point(rest, self.room());
            let (head, tail) = rest.split_at(at);
            self.current.push_str(head.trim_end());
            rest = if self.fence.is_some() {
                tail
            } else {
                tail.trim_start()
            };
            self.cut();
        }
        self.current.push_str(rest);
    }

    /// Whether the chunk holds nothing but the opening of a block that goes on.
    fn is_fresh(&self) -> bool {
        self.current.is_empty()
            || self
                .fence
                .as_ref()
                .is_some_and(|fence| self.current == format!("{fence}\n"))
    }

    fn cut(&mut self) {
        let paragraph = self
            .fence
            .is_none()
            .then(|| self.last_paragraph())
            .flatten();
        let carried = match paragraph {
            Some(at) => self
                .current
                .split_off(at)
                .trim_start_matches('\n')
                .to_owned(),
            None => String::new(),
        };
        self.push();
        if let Some(fence) = &self.fence {
            self.current = format!("{fence}\n");
        }
        self.current.push_str(&carried);
    }

    /// Where the last paragraph of the chunk begins, if cutting there leaves at least half of it.
    fn last_paragraph(&self) -> Option<usize> {
        let at = self.current.rfind("\n\n")?;
        let head = self.current.get(..at)?;
        let balanced = head.matches(FENCE).count().is_multiple_of(2);
        (balanced && discord_length(head) >= self.limit / 2).then_some(at)
    }

    fn push(&mut self) {
        let mut chunk = std::mem::take(&mut self.current);
        chunk.truncate(chunk.trim_end().len());
        if self.fence.is_some() {
            chunk.push('\n');
            chunk.push_str(FENCE);
        }
        let chunk = chunk.trim_matches('\n').to_owned();
        if !chunk.trim().is_empty() {
            self.chunks.push(chunk);
        }
    }

    fn finish(&mut self) {
        if !self.is_fresh() {
            self.push();
        }
    }
}

/// The byte at which to cut a line that is too long: after the last blank that leaves at least half,
/// else at the last character that fits.
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
    let first = line.chars().next().map_or(0, char::len_utf8);
    blank.unwrap_or(end).max(first)
}
