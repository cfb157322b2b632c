//! From interactions (buttons, slash commands, forms) to what people want. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use serenity::model::application::{
    ActionRowComponent, CommandDataOption, CommandDataOptionValue, CommandInteraction,
    ComponentInteraction, ComponentInteractionDataKind, Interaction, ModalInteraction,
};
use serenity::model::channel::ChannelType;
use serenity::model::user::User;

use crate::discord::access::Form;
use crate::discord::commands::VERDICTS;
use crate::discord::forms;
use crate::discord::ingress::{Remote, shown_name};
use crate::domain::actor::{Actor, Author};
use crate::domain::attachment::Attachment;
use crate::domain::commands::{self, Question, Takes};
use crate::domain::ids::{
    ChannelId, GuildId, MessageId, RequestId, ServerRoleId, SubjectId, UserId,
};
use crate::domain::incoming::{Command, RouteChange};
use crate::domain::ingress::Ingress;
use crate::domain::item::ItemSource;
use crate::domain::language::Language;
use crate::domain::outgoing::{Button, ButtonAct};
use crate::domain::plan_decision::{GivenAnswer, NumberedAnswer};
use crate::domain::request::ReplyRoute;
use crate::domain::routes::Lane;
use crate::domain::sprint::Kickoff;
use crate::domain::verification::ManualVerdict;

/// What a person wants.
#[derive(Debug, Clone, PartialEq)]
pub enum PersonRequest {
    /// Something to be done.
    Command(Command),
    /// Something to be shown.
    Look(Question),
    /// Something about a request, by an id that is none, as it was typed.
    NoRequest(String),
    /// Words about what somebody has looked at, without how it is.
    NoVerdict(String),
    /// Another lane and a step more at once.
    LaneAndStep,
    /// A form, which was shown already. These files came with the command and belong to it.
    Form(Vec<(Attachment, Remote)>),
    /// A plan in a file, and the approval that was given for it.
    Plan(Vec<(Attachment, Remote)>, Option<String>),
    /// A sprint, by a filled-in form: the kickoff, still without the files of these ids.
    Kickoff(Box<Kickoff>, Vec<u64>),
}

/// A person and what they want.
#[derive(Debug, Clone, PartialEq)]
pub struct PersonCommand {
    /// Who.
    pub actor: Actor,
    /// Where.
    pub channel_id: ChannelId,
    /// The language that Discord speaks to the person.
    pub language: Language,
    /// What.
    pub wanted: PersonRequest,
}

/// The form that answers what is wanted, and nothing else does.
pub(crate) fn opens(wanted: &PersonRequest) -> Option<Form> {
    match wanted {
        PersonRequest::Form(_) => Some(Form::Kickoff),
        PersonRequest::Command(Command::Press { button, .. })
            if matches!(
                button.act,
                ButtonAct::Question | ButtonAct::Guide | ButtonAct::ApproveAnyway
            ) =>
        {
            Some(Form::Question)
        }
        PersonRequest::Command(Command::Press { button, .. }) if button.act == ButtonAct::Issue => {
            Some(Form::Issue)
        }
        PersonRequest::Command(Command::Press { button, .. })
            if matches!(
                button.act,
                ButtonAct::RequestChanges | ButtonAct::TryWithWords | ButtonAct::SkipRequest
            ) =>
        {
            Some(Form::AboutRequest)
        }
        PersonRequest::Command(_)
        | PersonRequest::Look(_)
        | PersonRequest::NoRequest(_)
        | PersonRequest::NoVerdict(_)
        | PersonRequest::LaneAndStep
        | PersonRequest::Plan(..)
        | PersonRequest::Kickoff(..) => None,
    }
}

/// Who would see a form, and which, from the payload as Discord sent it.
pub(crate) fn form_seeker(data: &Value) -> Option<(Actor, Form)> {
    let PersonCommand { actor, wanted, .. } = match serde_json::from_value(data.clone()).ok()? {
        Interaction::Component(it) => press(&it)?,
        Interaction::Command(it) => slash(&it)?,
        Interaction::Ping(_) | Interaction::Autocomplete(_) | Interaction::Modal(_) | _ => {
            return None;
        }
    };
    Some((actor, opens(&wanted)?))
}

fn actor(
    user: &User,
    member: Option<&serenity::model::guild::Member>,
    guild: Option<serenity::model::id::GuildId>,
    via: Ingress,
) -> Actor {
    let server_roles = member.map_or_else(Vec::new, |member| {
        member.roles.iter().map(|id| ServerRoleId(id.get())).collect()
    });
    let name = member.and_then(|member| member.nick.clone()).unwrap_or_else(|| shown_name(user));
    Actor::Person {
        author: Author { id: UserId(user.id.get()), name, is_bot: user.bot, server_roles },
        guild_id: guild.map(|id| GuildId(id.get())),
        via,
    }
}

/// Reads a press of a button; `None` for components that are not ours.
#[must_use]
pub fn press(payload: &ComponentInteraction) -> Option<PersonCommand> {
    let button = Button::parse(&payload.data.custom_id)?;
    let channel_id = ChannelId(payload.channel_id.get());
    // A list of choices with the id of a button is no button.
    let is_button = matches!(payload.data.kind, ComponentInteractionDataKind::Button);
    let via = if is_button { Ingress::Button } else { Ingress::Select };
    let message_id = MessageId(payload.message.id.get());
    let chosen = if let ComponentInteractionDataKind::StringSelect { values } = &payload.data.kind {
        values.first()
    } else {
        None
    };
    let command = chosen
        .and_then(|chosen| chosen_lane(&button, chosen))
        .or_else(|| chosen_answer(&button, chosen?, (channel_id, message_id)))
        .unwrap_or(Command::Press { button, message_id, channel_id });
    Some(PersonCommand {
        actor: actor(&payload.user, payload.member.as_ref(), payload.guild_id, via),
        channel_id,
        language: Language::of_locale(&payload.locale),
        wanted: PersonRequest::Command(command),
    })
}

/// What was chosen in the list of lanes of a card.
fn chosen_lane(button: &Button, chosen: &str) -> Option<Command> {
    if button.act != ButtonAct::Lane {
        return None;
    }
    let request_id = RequestId::parse(&button.subject).ok()?;
    let lane = chosen.parse().ok()?;
    Some(Command::Route { request_id, change: RouteChange::Lane(lane) })
}

/// What was chosen in the options of a question of the planner.
fn chosen_answer(button: &Button, chosen: &str, card: (ChannelId, MessageId)) -> Option<Command> {
    if button.act != ButtonAct::Choose {
        return None;
    }
    let (request, number) = button.subject.rsplit_once('.')?;
    let answer = match chosen.parse().ok()? {
        0 => GivenAnswer::YouDecide,
        place => GivenAnswer::Option(place),
    };
    let answers = vec![NumberedAnswer { number: number.parse().ok()?, answer }];
    let request_id = RequestId::parse(request).ok()?;
    Some(Command::AnswerQuestions { request_id, answers, rest: false, card: Some(card) })
}

/// The options of a command or of one of its subcommands.
struct Options<'a>(&'a [CommandDataOption]);

impl<'a> Options<'a> {
    fn value(&self, name: &str) -> Option<&'a CommandDataOptionValue> {
        self.0.iter().find(|it| it.name == name).map(|it| &it.value)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        let CommandDataOptionValue::String(text) = self.value(name)? else {
            return None;
        };
        Some(text.trim())
    }

    fn yes(&self, name: &str) -> bool {
        matches!(self.value(name), Some(CommandDataOptionValue::Boolean(true)))
    }

    fn number(&self, name: &str) -> Option<i64> {
        let CommandDataOptionValue::Integer(number) = self.value(name)? else {
            return None;
        };
        Some(*number)
    }

    /// The subcommand that was chosen, with its options; without one, the command's own.
    fn chosen(&self) -> (&'a str, Options<'a>) {
        let inner = |it: &'a CommandDataOption| {
            let CommandDataOptionValue::SubCommand(inner) = &it.value else {
                return None;
            };
            Some((it.name.as_str(), Options(inner)))
        };
        self.0.iter().find_map(inner).unwrap_or(("", Options(self.0)))
    }
}

/// The channel of the thread in which a command was given.
fn parent(payload: &CommandInteraction) -> Option<ChannelId> {
    let is_thread = |kind| {
        matches!(
            kind,
            ChannelType::NewsThread | ChannelType::PublicThread | ChannelType::PrivateThread
        )
    };
    let thread = payload.channel.as_ref().filter(|it| is_thread(it.kind))?;
    thread.parent_id.map(|parent| ChannelId(parent.get()))
}

/// Reads a slash command; `None` for commands that are not ours.
#[must_use]
pub fn slash(payload: &CommandInteraction) -> Option<PersonCommand> {
    let all = Options(&payload.data.options);
    let (inner, options) = all.chosen();
    let path = [payload.data.name.as_str(), inner];
    let path = if inner.is_empty() { &path[..1] } else { &path[..] };
    commands::find(path)?;
    let request = |make: &dyn Fn(RequestId) -> PersonRequest| {
        let text = options.text("request").unwrap_or_default();
        match RequestId::parse(text) {
            Ok(id) => make(id),
            Err(_) => PersonRequest::NoRequest(text.chars().take(60).collect()),
        }
    };
    let shown = Language::of_locale(&payload.locale);
    let text = || options.text("text").unwrap_or_default().to_owned();
    let ask = |lane| {
        PersonRequest::Command(Command::Ask {
            language: Language::of(&text()).unwrap_or(shown),
            text: text(),
            channel_id: Some(ChannelId(payload.channel_id.get())),
            parent_id: parent(payload),
            lane,
        })
    };
    let wanted = match path {
        ["ask"] => ask(None),
        ["fast"] => ask(Some(Lane::Fast)),
        ["quick"] => ask(Some(Lane::Quick)),
        ["full"] => ask(Some(Lane::Full)),
        ["route"] => {
            match (options.text("lane").and_then(|it| it.parse().ok()), options.text("add")) {
                (Some(_), Some(_)) => PersonRequest::LaneAndStep,
                (Some(lane), None) => request(&|request_id| {
                    PersonRequest::Command(Command::Route {
                        request_id,
                        change: RouteChange::Lane(lane),
                    })
                }),
                (None, Some(step)) => request(&|request_id| {
                    let change = RouteChange::Add(step.chars().take(60).collect());
                    PersonRequest::Command(Command::Route { request_id, change })
                }),
                (None, None) => request(&|id| PersonRequest::Look(Question::Why(id.into()))),
            }
        }
        ["status"] => PersonRequest::Look(Question::Status),
        ["board"] => PersonRequest::Look(Question::Board),
        ["why"] => {
            let text = options.text("what").unwrap_or_default();
            match SubjectId::parse(text) {
                Ok(id) => PersonRequest::Look(Question::Why(id)),
                Err(_) => PersonRequest::NoRequest(text.chars().take(60).collect()),
            }
        }
        ["request", "cancel"] => {
            request(&|request_id| PersonRequest::Command(Command::Cancel { request_id }))
        }
        ["request", "retry"] => {
            request(&|request_id| PersonRequest::Command(Command::Retry { request_id }))
        }
        ["request", "split"] => {
            request(&|request_id| PersonRequest::Command(Command::Split { request_id }))
        }
        ["request", "pause"] => {
            request(&|request_id| PersonRequest::Command(Command::Pause { request_id }))
        }
        ["request", "skip"] => request(&|request_id| {
            PersonRequest::Command(Command::Skip { request_id, reason: text() })
        }),
        ["request", "steer"] => request(&|request_id| {
            PersonRequest::Command(Command::Steer { request_id, text: text() })
        }),
        ["approve"] => verdict(&options, ChannelId(payload.channel_id.get())),
        ["verify"] => verify(&options),
        ["revise"] => request(&|request_id| {
            PersonRequest::Command(Command::RequestChanges {
                request_id,
                text: text(),
                ended: None,
            })
        }),
        ["sprint", "start"] => PersonRequest::Form(files(payload, &options)),
        ["sprint", "stop"] => {
            PersonRequest::Command(Command::SprintStop { now: options.yes("now") })
        }
        ["sprint", "restart"] => PersonRequest::Command(Command::SprintRestart),
        ["sprint", "status"] => PersonRequest::Look(Question::Sprint),
        ["backlog", "list"] => PersonRequest::Look(Question::Backlog),
        ["backlog", "add"] => PersonRequest::Command(item(&options)),
        ["plan", "import"] => {
            let approve = options.text("approve").map(|text| text.chars().take(64).collect());
            PersonRequest::Plan(files(payload, &options), approve)
        }
        ["outbox", "retry"] => PersonRequest::Command(Command::OutboxRetry),
        ["outbox", "dismiss"] => {
            let message = options.text("message").unwrap_or_default();
            let message = message.chars().take(60).collect();
            PersonRequest::Command(Command::OutboxDismiss { message })
        }
        ["models"] => PersonRequest::Look(Question::Models),
        ["cost"] => PersonRequest::Look(Question::Cost),
        ["health"] => PersonRequest::Look(Question::Health),
        ["settings"] => PersonRequest::Look(Question::Settings),
        _ => return None,
    };
    let actor = actor(&payload.user, payload.member.as_deref(), payload.guild_id, Ingress::Slash);
    let channel_id = ChannelId(payload.channel_id.get());
    Some(PersonCommand { actor, channel_id, language: shown, wanted })
}

/// `/approve`: the request and the content that was chosen, as [`Waiting`] wrote them, and the verdict.
fn verdict(options: &Options<'_>, channel: ChannelId) -> PersonRequest {
    let what = options.text("what").unwrap_or_default();
    let (request, content) = what.split_once('@').unwrap_or((what, ""));
    let yes = options.text("decision") == Some(VERDICTS[0]);
    match RequestId::parse(request) {
        Ok(request_id) => {
            let content = content.to_owned();
            let reason = options.text("reason").map(str::to_owned);
            let channel_id = Some(channel);
            PersonRequest::Command(Command::Decide { request_id, content, yes, reason, channel_id })
        }
        Err(_) => PersonRequest::NoRequest(what.chars().take(60).collect()),
    }
}

/// `/verify`: what waits, or the criterion that was chosen and how it is.
fn verify(options: &Options<'_>) -> PersonRequest {
    let words = options.text("text").unwrap_or_default().to_owned();
    let (Some(what), Some(verdict)) = (options.text("what"), options.text("verdict")) else {
        return match words.is_empty() {
            true => PersonRequest::Look(Question::Verify),
            false => PersonRequest::NoVerdict(words),
        };
    };
    match (what.parse(), verdict.parse()) {
        (Ok(criterion), Ok(verdict)) => {
            PersonRequest::Command(Command::Verify { criterion, verdict, words })
        }
        (_, _) => PersonRequest::NoRequest(what.chars().take(60).collect()),
    }
}

/// Somebody who types into an option, and what it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Typing {
    /// Who.
    pub actor: Actor,
    /// The language that Discord speaks to the person.
    pub language: Language,
    /// What the option takes.
    pub takes: Takes,
    /// What is typed so far.
    pub typed: String,
}

/// Reads what is typed into an option; `None` for options that suggest nothing.
#[must_use]
pub fn typing(payload: &CommandInteraction) -> Option<Typing> {
    let all = Options(&payload.data.options);
    let (inner, options) = all.chosen();
    let path = [payload.data.name.as_str(), inner];
    let entry = commands::find(if inner.is_empty() { &path[..1] } else { &path[..] })?;
    let (name, typed) = options.0.iter().find_map(|it| {
        let CommandDataOptionValue::Autocomplete { value, .. } = &it.value else { return None };
        Some((&it.name, value))
    })?;
    let takes = entry.options.iter().find(|option| option.name.en == name)?.takes;
    let actor =
        actor(&payload.user, payload.member.as_deref(), payload.guild_id, Ingress::Autocomplete);
    let typed = typed.chars().take(100).collect();
    Some(Typing { actor, language: Language::of_locale(&payload.locale), takes, typed })
}

/// The files that came with a command.
fn files(payload: &CommandInteraction, options: &Options<'_>) -> Vec<(Attachment, Remote)> {
    let file = |it: &CommandDataOption| {
        let CommandDataOptionValue::Attachment(id) = it.value else {
            return None;
        };
        let found = payload.data.resolved.attachments.get(&id)?;
        let attachment = Attachment {
            filename: found.filename.clone(),
            size: u64::from(found.size),
            saved: None,
        };
        Some((attachment, Remote { id: id.get(), url: found.url.clone() }))
    };
    options.0.iter().filter_map(file).collect()
}

/// `/backlog add`. What is wrong with the item, the engine says.
fn item(options: &Options<'_>) -> Command {
    let mut item = Map::new();
    for (name, key) in [("title", "title"), ("scope", "scope"), ("kind", "kind")] {
        if let Some(text) = options.text(name) {
            item.insert(key.to_owned(), json!(text));
        }
    }
    if let Some(rank) = options.number("rank") {
        item.insert("priority_rank".to_owned(), json!(rank));
    }
    Command::BacklogMerge {
        payload: Value::Array(vec![Value::Object(item)]),
        source: ItemSource::User,
    }
}

/// Reads a filled-in form; `None` for forms that are not ours.
#[must_use]
pub fn form(payload: &ModalInteraction) -> Option<PersonCommand> {
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    for component in payload.data.components.iter().flat_map(|row| &row.components) {
        if let ActionRowComponent::InputText(input) = component {
            values.insert(&input.custom_id, input.value.as_deref().unwrap_or_default());
        }
    }
    let text = |name: &str| values.get(name).map(|text| text.trim()).unwrap_or_default();
    let shown = Language::of_locale(&payload.locale);
    let actor = actor(&payload.user, payload.member.as_ref(), payload.guild_id, Ingress::Modal);
    let channel_id = ChannelId(payload.channel_id.get());
    if let Some(command) = with_words(&payload.data.custom_id, text(forms::WORDS).to_owned()) {
        let wanted = PersonRequest::Command(command);
        return Some(PersonCommand { actor, channel_id, language: shown, wanted });
    }
    let files = forms::files_of(&payload.data.custom_id)?;
    let mut kickoff = Kickoff {
        milestone: text(forms::MILESTONE).to_owned(),
        brief: text(forms::BRIEF).to_owned(),
        requirements: requirements(text(forms::REQUIREMENTS)),
        reply_route: ReplyRoute { channel_id: Some(channel_id), ..ReplyRoute::of(&actor) },
        ..Kickoff::default()
    };
    kickoff.request_text = kickoff.written();
    let words = format!("{} {}", kickoff.milestone, kickoff.brief);
    kickoff.language = Some(Language::of(&words).unwrap_or(shown));
    let wanted = PersonRequest::Kickoff(Box::new(kickoff), files);
    Some(PersonCommand { actor, channel_id, language: shown, wanted })
}

/// What a form of one field says; `None` for any other form.
fn with_words(form: &str, text: String) -> Option<Command> {
    if let Some((gate_id, version)) = forms::gate_of(form) {
        Some(Command::AskBack { gate_id, version, question: text })
    } else if let Some((gate_id, version)) = forms::approved_anyway(form) {
        Some(Command::ApproveAnyway { gate_id, version, reason: text })
    } else if let Some(request_id) = forms::revised(form) {
        Some(Command::RequestChanges { request_id, text, ended: None })
    } else if let Some(request_id) = forms::tried_with_words(form) {
        let with_words = !text.is_empty();
        Some(match with_words {
            true => Command::Steer { request_id, text },
            false => Command::Retry { request_id },
        })
    } else if let Some(request_id) = forms::skipped(form) {
        Some(Command::Skip { request_id, reason: text })
    } else {
        let (criterion, verdict) = (forms::criterion_of(form)?, ManualVerdict::Issue);
        Some(Command::Verify { criterion, verdict, words: text })
    }
}

/// One requirement a line, with or without a bullet; each once.
fn requirements(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
        if !line.is_empty() && !all.iter().any(|known| known == line) {
            all.push(line.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person() -> Value {
        json!({"id": "7", "username": "mina", "discriminator": "0", "bot": false})
    }

    fn interaction(kind: u8, data: Value) -> Value {
        json!({
            "id": "1", "application_id": "2", "type": kind, "token": "t", "version": 1,
            "data": data, "channel_id": "30", "user": person(), "locale": "ko",
            "app_permissions": "0", "entitlements": [], "context": 1,
            "authorizing_integration_owners": {}, "attachment_size_limit": 1,
        })
    }

    fn command(name: &str, options: Value) -> PersonCommand {
        let data = json!({
            "id": "5", "name": name, "type": 1, "options": options,
            "resolved": {"attachments": {"77": {
                "id": "77", "filename": "spec.md", "size": 3, "url": "http://x/spec.md",
                "proxy_url": "http://x/spec.md",
            }}},
        });
        slash(&serde_json::from_value(interaction(2, data)).unwrap()).unwrap()
    }

    fn sub(name: &str, options: Value) -> Value {
        json!([{"name": name, "type": 1, "options": options}])
    }

    #[test]
    fn subcommands_become_what_they_say() {
        let stop =
            command("sprint", sub("stop", json!([{"name": "now", "type": 5, "value": true}])));
        assert_eq!(stop.wanted, PersonRequest::Command(Command::SprintStop { now: true }));
        let stop = command("sprint", sub("stop", json!([])));
        assert_eq!(stop.wanted, PersonRequest::Command(Command::SprintStop { now: false }));
        let restart = command("sprint", sub("restart", json!([])));
        assert_eq!(restart.wanted, PersonRequest::Command(Command::SprintRestart));
        let status = command("sprint", sub("status", json!([])));
        assert_eq!(status.wanted, PersonRequest::Look(Question::Sprint));
        assert_eq!(
            command("backlog", sub("list", json!([]))).wanted,
            PersonRequest::Look(Question::Backlog)
        );
        let add = json!([
            {"name": "title", "type": 3, "value": " Louder "},
            {"name": "kind", "type": 3, "value": "bug"},
            {"name": "rank", "type": 4, "value": 2},
        ]);
        let payload = json!([{"title": "Louder", "kind": "bug", "priority_rank": 2}]);
        let merge = Command::BacklogMerge { payload, source: ItemSource::User };
        assert_eq!(command("backlog", sub("add", add)).wanted, PersonRequest::Command(merge));
    }

    #[test]
    fn half_a_command_says_what_is_missing_and_loses_no_words() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let said = command("verify", json!([text("text", "the button is grey")]));
        assert_eq!(said.wanted, PersonRequest::NoVerdict("the button is grey".to_owned()));
        assert_eq!(command("verify", json!([])).wanted, PersonRequest::Look(Question::Verify));
        let id = text("request", "20260324-1a2b3c4d");
        let both = command("route", json!([id, text("lane", "full"), text("add", "qa")]));
        assert_eq!(both.wanted, PersonRequest::LaneAndStep);
    }

    #[test]
    fn the_files_of_a_start_are_named() {
        let file = json!([{"name": "file", "type": 11, "value": "77"}]);
        let PersonRequest::Form(files) = command("sprint", sub("start", file)).wanted else {
            panic!()
        };
        assert_eq!(files.len(), 1);
        assert_eq!((files[0].0.filename.as_str(), files[0].1.id), ("spec.md", 77));
    }

    #[test]
    fn a_filled_in_form_is_a_kickoff() {
        let field = |id: &str, value: &str| json!({"type": 1, "components": [{"type": 4, "custom_id": id, "value": value}]});
        let data = json!({"custom_id": "k:77,78", "components": [
            field("milestone", " 인사말 "), field("brief", ""), field("requirements", "- 한 줄\n\n* 두 줄\n한 줄"),
        ]});
        let read = form(&serde_json::from_value(interaction(5, data)).unwrap()).unwrap();
        let PersonRequest::Kickoff(kickoff, files) = read.wanted else { panic!() };
        assert_eq!(files, [77, 78]);
        assert_eq!(kickoff.milestone, "인사말");
        assert_eq!(kickoff.requirements, ["한 줄", "두 줄"]);
        assert_eq!(kickoff.language, Some(Language::Ko));
        assert_eq!(kickoff.reply_route.channel_id, Some(ChannelId(30)));
        assert_eq!(
            kickoff.request_text,
            "start sprint\nmilestone: 인사말\nrequirements:\n- 한 줄\n- 두 줄"
        );
    }
}
