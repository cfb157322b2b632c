//! `teams backlog`: what could become work. Looking reads the records; every change is a merge that the
//! running team decides. Within an agent's run the same words go to the socket of that run instead.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::output::say_json;
use super::plain::plain;
use super::{Failure, Global, records, say};
use crate::domain::ids::ItemId;
use crate::domain::incoming::Command as Order;
use crate::domain::item::{ItemKind, ItemSource, ItemStatus};
use crate::engine::sprint::backlog;
use crate::platform::files;

/// Bytes of the largest file with items.
const LARGEST: u64 = 3 << 20;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the items that may become work
    List {
        /// Also those that are done, dropped or carried on
        #[arg(long)]
        all: bool,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Add an item
    Add {
        /// One line
        #[arg(long, value_name = "WORDS")]
        title: String,
        #[command(flatten)]
        fields: Fields,
        /// Print the receipt as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change an item; what is not given stays as it is
    Set {
        /// Which
        #[arg(value_name = "ITEM")]
        id: ItemId,
        /// One line
        #[arg(long, value_name = "WORDS")]
        title: Option<String>,
        /// Where it stands: pending, selected, blocked, done, carried_over, dropped
        #[arg(long)]
        status: Option<ItemStatus>,
        /// Why it is blocked
        #[arg(long, value_name = "WORDS")]
        blocked_reason: Option<String>,
        #[command(flatten)]
        fields: Fields,
        /// Print the receipt as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add and change many items at once
    Merge {
        /// JSON: a list of items, {"backlog_items": […]} or one item; `-` reads standard input
        #[arg(long, value_name = "FILE")]
        input_file: PathBuf,
        /// Who found them where an item does not say: user, planner, sourcer, discovery, carry_over
        #[arg(long, default_value = "user")]
        source: ItemSource,
        /// Print the receipt as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say that an item is not wanted
    Drop {
        /// Which
        #[arg(value_name = "ITEM")]
        id: ItemId,
        /// Why
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
        /// Print the receipt as JSON
        #[arg(long)]
        json: bool,
    },
}

/// What an item has beside its title.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Fields {
    /// What is to be done
    #[arg(long, value_name = "WORDS")]
    scope: Option<String>,
    /// A few lines about it
    #[arg(long, value_name = "WORDS")]
    summary: Option<String>,
    /// bug, feature, enhancement or chore
    #[arg(long)]
    kind: Option<ItemKind>,
    /// 1 is first; 0 means unranked
    #[arg(long, value_name = "NUMBER", value_parser = rank, allow_negative_numbers = true)]
    rank: Option<u32>,
    /// The milestone that it serves
    #[arg(long, value_name = "WORDS")]
    milestone: Option<String>,
    /// When it counts as done; may be given several times
    #[arg(long = "criterion", value_name = "WORDS")]
    criteria: Vec<String>,
    /// An item that has to be done before; may be given several times
    #[arg(long = "depends-on", value_name = "ITEM")]
    depends_on: Vec<ItemId>,
}

fn rank(word: &str) -> Result<u32, String> {
    word.parse()
        .map_err(|_| "expected a whole number from 0: 1 is first, 0 means unranked".to_owned())
}

impl Fields {
    fn put(&self, item: &mut Map<String, Value>) -> Result<(), Failure> {
        let texts = [
            ("scope", "--scope", &self.scope),
            ("summary", "--summary", &self.summary),
            ("milestone_title", "--milestone", &self.milestone),
        ];
        for (key, flag, text) in texts {
            if let Some(text) = text {
                item.insert(key.to_owned(), json!(words(flag, text)?));
            }
        }
        if let Some(kind) = self.kind {
            item.insert("kind".to_owned(), json!(kind));
        }
        if let Some(rank) = self.rank {
            item.insert("priority_rank".to_owned(), json!(rank));
        }
        if !self.criteria.is_empty() {
            let all = self.criteria.iter().map(|text| words("--criterion", text));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            item.insert("acceptance_criteria".to_owned(), json!(all));
        }
        if !self.depends_on.is_empty() {
            item.insert("depends_on".to_owned(), json!(self.depends_on));
        }
        Ok(())
    }
}

fn words(flag: &str, text: &str) -> Result<String, Failure> {
    match text.trim() {
        "" => Err(Failure::usage(format!("{flag} is blank"))),
        text => Ok(text.to_owned()),
    }
}

/// Runs it.
pub(super) fn run(global: &Global, command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { all, json } => list(&global.existing()?, *all, *json),
        Command::Add { title, fields, json } => {
            let mut item = Map::new();
            item.insert("title".to_owned(), json!(words("--title", title)?));
            fields.put(&mut item)?;
            merge(global, json!([item]), ItemSource::User, *json)
        }
        Command::Set { id, title, status, blocked_reason, fields, json } => {
            let mut item = Map::new();
            item.insert("backlog_id".to_owned(), json!(id));
            if let Some(title) = title {
                item.insert("title".to_owned(), json!(words("--title", title)?));
            }
            if let Some(status) = status {
                item.insert("status".to_owned(), json!(status));
            }
            if let Some(reason) = blocked_reason {
                item.insert("blocked_reason".to_owned(), json!(words("--blocked-reason", reason)?));
            }
            fields.put(&mut item)?;
            if item.len() == 1 {
                return Err(Failure::usage(format!("nothing to change in {id}"))
                    .hint(Some("give at least one field, such as --rank 1".to_owned())));
            }
            merge(global, json!([item]), ItemSource::User, *json)
        }
        Command::Merge { input_file, source, json } => {
            merge(global, payload(input_file)?, *source, *json)
        }
        Command::Drop { id, reason, json } => {
            let mut item = json!({ "backlog_id": id, "status": ItemStatus::Dropped });
            if let Some(reason) = reason {
                item["dropped_reason"] = json!(words("--reason", reason)?);
            }
            merge(global, json!([item]), ItemSource::User, *json)
        }
    }
}

fn payload(file: &Path) -> Result<Value, Failure> {
    let (name, text) = if file == Path::new("-") {
        use std::io::Read as _;
        let mut text = String::new();
        std::io::stdin()
            .take(LARGEST + 1)
            .read_to_string(&mut text)
            .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        ("standard input".to_owned(), text)
    } else {
        if files::metadata(file)?.len() > LARGEST {
            return Err(too_large(&file.display().to_string()));
        }
        (file.display().to_string(), files::read_text(file)?)
    };
    if text.len() as u64 > LARGEST {
        return Err(too_large(&name));
    }
    serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{name} is not JSON: {error}")))
}

fn too_large(name: &str) -> Failure {
    Failure::new(format!("{name} is larger than 3 MiB; send it in parts"))
}

fn merge(global: &Global, payload: Value, source: ItemSource, json: bool) -> Result<(), Failure> {
    let order = Order::BacklogMerge { payload, source };
    let reply = super::command::call(&global.workspace()?, order)?;
    if json {
        let values = reply.content.map(|content| Value::Object(content.values));
        say_json(&values.unwrap_or_default(), false);
    } else {
        say(plain(&reply.text));
    }
    Ok(())
}

fn list(root: &Path, all: bool, json: bool) -> Result<(), Failure> {
    let mut items = records::backlog_items(root)?;
    items.retain(|item| all || item.status.is_active());
    items.sort_by_key(backlog::priority_key);
    if json {
        say_json(&json!(items), true);
        return Ok(());
    }
    if items.is_empty() {
        say("the backlog is empty");
    }
    for item in &items {
        let rank = match item.priority_rank {
            0 => "-".to_owned(),
            rank => rank.to_string(),
        };
        let (status, kind) = (item.status.as_str(), item.kind.as_str());
        say(format_args!("{rank:>3}  {}  {status:<9} {kind:<11} {}", item.backlog_id, item.title));
        if !item.blocked_reason.is_empty() {
            say(format_args!("     blocked: {}", item.blocked_reason));
        }
    }
    let open = backlog::overview(&items);
    if !open.active.is_empty() {
        let kinds = open.kinds.iter().map(|(kind, n)| format!("{n} {}", kind.as_str()));
        let sources = open.sources.iter().map(|(from, n)| format!("{n} {}", from.as_str()));
        let (kinds, sources): (Vec<_>, Vec<_>) = (kinds.collect(), sources.collect());
        say(format_args!(
            "{} open: {}   found by: {}",
            open.active.len(),
            kinds.join(", "),
            sources.join(", ")
        ));
    }
    Ok(())
}

/// `teams status --backlog`: how many items stand in each status (`spec/teams.md` 1.2).
pub(super) fn totals(root: &Path) -> Result<String, Failure> {
    let counts = backlog::counts(&records::backlog_items(root)?);
    let shown = [
        ItemStatus::Pending,
        ItemStatus::Selected,
        ItemStatus::Blocked,
        ItemStatus::Done,
        ItemStatus::CarriedOver,
    ];
    let count = |status: ItemStatus| counts.get(&status).copied().unwrap_or(0);
    let words = shown.map(|status| format!("backlog_{}={}", status.as_str(), count(status)));
    Ok(words.join(" "))
}
