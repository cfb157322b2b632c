//! What an answer of a model cost, and whether it was a refusal, read from it on its way.

use serde_json::Value;

use crate::domain::config::ModelApi;
use crate::domain::usage::Usage;

/// Bytes of one line, or of an answer in one piece, that are looked at.
const LONGEST: usize = 16 << 20;

/// Reads along.
#[derive(Debug)]
pub(super) struct Reader {
    api: ModelApi,
    /// Whether the answer is a stream of events.
    events: bool,
    line: Vec<u8>,
    /// The line under way is longer than what is looked at.
    over: bool,
    usage: Option<Usage>,
    /// Whether it said its last about that.
    is_final: bool,
    model: Option<String>,
    refusal: Option<String>,
    is_unseen: bool,
}

/// Characters of a refusal's words that are kept.
const REFUSAL: usize = 2_000;

/// What an answer says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ResponseFacts {
    /// What it cost; none where it does not say.
    pub(super) cost: Option<Usage>,
    /// The model that gave it.
    pub(super) model: Option<String>,
    /// Whether that is all of it.
    pub(super) is_final: bool,
    /// The model declined, in the field for it and not in its text, which Codex shows to nobody: how it began.
    pub(super) refusal: Option<String>,
    /// The model goes on without anybody who listens (`background` of the Responses API).
    pub(super) is_unseen: bool,
    /// No answer came at all in the time that one may take.
    pub(super) is_silence: bool,
}

impl Reader {
    pub(super) const fn new(api: ModelApi, events: bool) -> Reader {
        let line = Vec::new();
        Reader {
            api,
            events,
            line,
            over: false,
            usage: None,
            is_final: false,
            model: None,
            refusal: None,
            is_unseen: false,
        }
    }

    /// Whether the answer is a stream of events.
    pub(super) const fn is_stream(&self) -> bool {
        self.events
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if !self.events {
            self.push(bytes);
            return;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.push(part);
            if part.ends_with(b"\n") {
                self.one_line();
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.over |= self.line.len() + bytes.len() > LONGEST;
        if !self.over {
            self.line.extend_from_slice(bytes);
        }
    }

    fn one_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.over) {
            return;
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        // Most events are pieces of text, which need no parsing; the first ones name the model.
        let told = |name: &[u8]| data.windows(name.len()).any(|at| at == name);
        if (self.model.is_none()
            || told(b"usage")
            || told(b"usageMetadata")
            || told(b"\"refusal\""))
            && let Ok(event) = serde_json::from_slice(data)
        {
            self.note(&event);
        }
    }

    /// What the answer said, once it is over.
    pub(super) fn finish(mut self) -> ResponseFacts {
        if self.events {
            self.one_line();
        } else if !self.over
            && let Ok(answer) = serde_json::from_slice(&self.line)
        {
            self.note(&answer);
        }
        ResponseFacts {
            cost: self.usage,
            model: self.model,
            is_final: self.is_final,
            refusal: self.refusal,
            is_unseen: self.is_unseen,
            is_silence: false,
        }
    }

    fn note(&mut self, event: &Value) {
        // These two tell it as they go on; the others once, at the end.
        self.is_final = match self.api {
            ModelApi::Messages => event.get("type").is_some_and(|it| it == "message_delta"),
            ModelApi::Gemini => event.pointer("/candidates/0/finishReason").is_some(),
            ModelApi::Responses | ModelApi::Chat => true,
        };
        let whole = |event: &Value| event.get("model").and_then(Value::as_str).map(str::to_owned);
        match self.api {
            ModelApi::Responses => {
                let response = event.get("response").unwrap_or(event);
                self.is_unseen |= response.get("background").is_some_and(|it| *it == true);
                let output = response.get("output").and_then(Value::as_array);
                let mut items = event.get("item").into_iter().chain(output.into_iter().flatten());
                self.refusal = self.refusal.take().or_else(|| items.find_map(refusal));
                self.set(response.get("usage"), |usage| {
                    let cached = usage.pointer("/input_tokens_details/cached_tokens");
                    of(number(usage, "input_tokens"), count(cached), number(usage, "output_tokens"))
                });
                self.model = whole(response).or(self.model.take());
            }
            ModelApi::Messages => {
                let message = event.get("message").unwrap_or(event);
                // The start has the input, each later one the output so far; only newer numbers count.
                let before = self.usage.unwrap_or_default();
                self.set(message.get("usage"), |usage| {
                    let read = number(usage, "cache_read_input_tokens");
                    let written = number(usage, "cache_creation_input_tokens");
                    let input =
                        number(usage, "input_tokens").saturating_add(read).saturating_add(written);
                    let told = of(input, read, number(usage, "output_tokens"));
                    before.max(Usage { written_tokens: written, ..told })
                });
                self.model = whole(message).or(self.model.take());
            }
            ModelApi::Chat => {
                self.set(event.get("usage"), |usage| {
                    let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
                    let input = number(usage, "prompt_tokens");
                    of(input, count(cached), number(usage, "completion_tokens"))
                });
                self.model = whole(event).or(self.model.take());
            }
            ModelApi::Gemini => {
                self.set(event.get("usageMetadata"), |usage| {
                    let cached = number(usage, "cachedContentTokenCount");
                    let thought = number(usage, "thoughtsTokenCount");
                    let output = number(usage, "candidatesTokenCount") + thought;
                    of(number(usage, "promptTokenCount"), cached, output)
                });
                let named = event.get("modelVersion").and_then(Value::as_str).map(str::to_owned);
                self.model = named.or(self.model.take());
            }
        }
    }

    fn set(&mut self, found: Option<&Value>, read: impl FnOnce(&Value) -> Usage) {
        if let Some(usage) = found.filter(|usage| usage.is_object()) {
            self.usage = Some(read(usage));
        }
    }
}

/// The words of an item of the Responses API that is a message that declines.
fn refusal(item: &Value) -> Option<String> {
    let parts = item.get("content").and_then(Value::as_array);
    let mut parts = parts.into_iter().flatten();
    let part = parts.find(|part| part.get("type").is_some_and(|it| it == "refusal"))?;
    let words = part.get("refusal").and_then(Value::as_str).unwrap_or_default();
    Some(words.chars().take(REFUSAL).collect())
}

const fn of(input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, cached_tokens, written_tokens: 0, output_tokens, cost_usd: 0.0 }
}

fn number(value: &Value, key: &str) -> u64 {
    count(value.get(key))
}

fn count(value: Option<&Value>) -> u64 {
    value.and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same whatever the pieces are that it comes in.
    fn read(api: ModelApi, events: bool, text: &str) -> Option<(Usage, Option<String>)> {
        let whole = |size: usize| {
            let mut reader = Reader::new(api, events);
            text.as_bytes().chunks(size).for_each(|piece| reader.feed(piece));
            let facts = reader.finish();
            facts.cost.map(|usage| (usage, facts.model))
        };
        let found = whole(1);
        for size in [2, 7, 64, 1 << 20] {
            assert_eq!(whole(size), found, "{size}");
        }
        found
    }

    #[test]
    fn responses_say_it_at_the_end() {
        let stream = concat!(
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"the word usage\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-5.5\",\"usage\":{\"input_tokens\":1000,",
            "\"input_tokens_details\":{\"cached_tokens\":400},\"output_tokens\":20,\"total_tokens\":1020}}}\n\n",
        );
        let found = read(ModelApi::Responses, true, stream);
        assert_eq!(found, Some((of(1000, 400, 20), Some("gpt-5.5".to_owned()))));
        let plain = r#"{"model":"m","usage":{"input_tokens":7,"output_tokens":2}}"#;
        let found = read(ModelApi::Responses, false, plain);
        assert_eq!(found, Some((of(7, 0, 2), Some("m".to_owned()))));
    }

    #[test]
    fn a_refusal_is_one_by_its_kind_and_not_by_its_words() {
        let refused = |text: &str| {
            let mut reader = Reader::new(ModelApi::Responses, true);
            text.as_bytes().chunks(7).for_each(|piece| reader.feed(piece));
            reader.finish().refusal
        };
        let item = |kind: &str| {
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"item\":{{\"type\":\"message\",\
                 \"content\":[{{\"type\":\"{kind}\",\"{kind}\":\"a \\\"refusal\\\"\"}}]}}}}\n\n"
            )
        };
        assert_eq!(refused(&item("refusal")).as_deref(), Some("a \"refusal\""));
        assert_eq!(refused(&item("output_text")), None);
        let whole =
            "data: {\"response\":{\"output\":[{\"content\":[{\"type\":\"refusal\"}]}]}}\n\n";
        assert_eq!(refused(whole).as_deref(), Some(""));
    }

    #[test]
    fn messages_say_it_at_the_start_and_on_the_way() {
        let stream = concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"sonnet\",\"usage\":{\"input_tokens\":600,",
            "\"cache_creation_input_tokens\":50,\"cache_read_input_tokens\":400,\"output_tokens\":1}}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"usage\"}}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":33}}\n\n",
        );
        let found = read(ModelApi::Messages, true, stream);
        let written = |usage| Usage { written_tokens: 50, ..usage };
        assert_eq!(found, Some((written(of(1050, 400, 33)), Some("sonnet".to_owned()))));
        // Cut off before the end: what is known counts.
        let cut = &stream[..stream.find("event: message_delta").unwrap()];
        assert_eq!(read(ModelApi::Messages, true, cut).unwrap().0, written(of(1050, 400, 1)));
    }

    #[test]
    fn chat_says_it_in_a_last_chunk_if_asked_to() {
        let chunk = "data: {\"model\":\"m1\",\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
        let last = "data: {\"model\":\"m1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3,\
            \"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n";
        let found = read(ModelApi::Chat, true, &format!("{chunk}{last}"));
        assert_eq!(found, Some((of(10, 4, 3), Some("m1".to_owned()))));
        assert_eq!(read(ModelApi::Chat, true, chunk), None);
    }

    #[test]
    fn gemini_says_it_in_every_chunk_and_the_last_counts() {
        let chunk = |out: u32| {
            format!(
                "data: {{\"candidates\":[],\"usageMetadata\":{{\"promptTokenCount\":9,\"cachedContentTokenCount\":2,\
                 \"candidatesTokenCount\":{out},\"thoughtsTokenCount\":5}},\"modelVersion\":\"gemini-2.5-pro\"}}\r\n\r\n"
            )
        };
        let found = read(ModelApi::Gemini, true, &format!("{}{}", chunk(1), chunk(8)));
        assert_eq!(found, Some((of(9, 2, 13), Some("gemini-2.5-pro".to_owned()))));
    }

    #[test]
    fn what_is_no_answer_counts_nothing() {
        for text in ["", "data: usage {", "data:", "<html>usage</html>", "data: {\"usage\": 7}\n"] {
            assert_eq!(read(ModelApi::Responses, true, text), None, "{text}");
            assert_eq!(read(ModelApi::Messages, false, text), None, "{text}");
        }
    }
}
