//! Every paper of a small sprint, as it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono_tz::Asia::Seoul;
use serde_json::json;

use super::*;
use crate::domain::change::Change;
use crate::domain::ids::{ItemId, RequestId, SprintId, TodoId};
use crate::domain::item::{Item, ItemKind, ItemStatus};
use crate::domain::language::Language;
use crate::domain::request::RequestEvent;
use crate::domain::role::Role;
use crate::domain::sprint::Sprint;
use crate::domain::sprint::{
    Activity, BackingSource, CloseoutStatus, Kickoff, Phase, PlanningIteration, PrepassStatus,
    ResearchPrepass, SprintCommit, SprintStatus, Todo, TodoStatus, Trigger,
};
use crate::domain::state::State;
use crate::domain::time::Timestamp;
use crate::domain::work_span::WorkSpan;

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

fn at(clock: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-03-24T{clock}:00")).unwrap()
}

fn todo(nth: u32, title: &str, status: TodoStatus, ended: Option<&str>) -> Todo {
    let id = TodoId::parse(&format!("todo-09150{nth}-0a1b2c")).unwrap();
    let mut todo = Todo::new(id, title, at("09:15"));
    todo.priority_rank = nth;
    todo.progress.status = status;
    todo.backlog_id = Some(ItemId::parse(&format!("backlog-20260324-0000000{nth}")).unwrap());
    if status != TodoStatus::Queued {
        todo.progress.request_id =
            Some(RequestId::parse(&format!("20260324-0000000{nth}")).unwrap());
        todo.progress.started_at = Some(at("09:20"));
    }
    todo.progress.ended_at = ended.map(at);
    todo
}

/// A sprint of three todos in the middle of its work.
fn sprint(language: Language) -> Sprint {
    let kickoff = Kickoff {
        milestone: "A friendlier | greeting".to_owned(),
        brief: "It should speak the reader's language.\n<!-- /teams:generated -->".to_owned(),
        requirements: vec!["Korean and English".to_owned()],
        artifacts: vec!["docs/brief.md".to_owned()],
        request_text: "Please make it friendlier.\n# not a heading".to_owned(),
        ..Kickoff::default()
    };
    let id = SprintId::parse("260324-Sprint-09:00").unwrap();
    let mut sprint = Sprint::new(id, Trigger::ManualStart, kickoff, language);
    sprint.sprint_name = "2026-03-24-A friendlier greeting".to_owned();
    sprint.sprint_folder_name = "260324-Sprint-09-00".to_owned();
    sprint.milestone_title = "Greetings in two languages".to_owned();
    sprint.started_at = Some(at("09:00"));
    sprint.planning.ready_at = Some(at("09:15"));
    sprint.status = SprintStatus::Running;
    sprint.phase = Phase::Ongoing;
    let mut done = todo(1, "Read the language", TodoStatus::Committed, Some("09:40"));
    done.progress.commit_sha = SHA.to_owned();
    done.progress.proven_through = "fedcba98765432100123456789abcdef01234567".to_owned();
    done.progress.summary = "`LANG` is read.".to_owned();
    done.progress.artifacts = vec!["greet.sh".to_owned()];
    done.acceptance_criteria = vec!["An unset `LANG` means English".into()];
    let mut running = todo(2, "Korean\n## greeting", TodoStatus::Running, None);
    running.depends_on = vec![done.progress.todo_id.clone()];
    sprint.work.todos = vec![todo(3, "Send it by mail", TodoStatus::Queued, None), running, done];
    sprint.planning.iterations.push(PlanningIteration {
        created_at: at("09:05"),
        phase: "initial".to_owned(),
        step: "milestone_refinement".to_owned(),
        request_id: Some(RequestId::parse("20260324-0000000a").unwrap()),
        summary: "Two languages, small steps.\n<!-- teams:generated plan -->".to_owned(),
        insights: vec!["The greeting stands in one place.".to_owned()],
        artifacts: vec!["shared_workspace/sprints/260324-Sprint-09-00/plan.md".to_owned()],
        phase_ready: true,
    });
    sprint.planning.research = Some(ResearchPrepass {
        request_id: None,
        status: PrepassStatus::Completed,
        reason_code: "needed_external_grounding".to_owned(),
        subject: "locales".to_owned(),
        report_artifact: String::new(),
        headline: "POSIX says how a language is named".to_owned(),
        planner_guidance: "Follow it.".to_owned(),
        backing_sources: vec![BackingSource {
            title: "POSIX locale".to_owned(),
            url: "https://pubs.opengroup.org/".to_owned(),
            relevance: "names of languages".to_owned(),
        }],
    });
    sprint.note(Activity {
        timestamp: at("09:40"),
        kind: crate::domain::sprint::SprintEventKind::RequestCompleted,
        role: "qa".to_owned(),
        request_id: "20260324-00000001".to_owned(),
        summary: "It holds.".to_owned(),
    });
    sprint
}

/// The same sprint at its end: one done, one failed, one blocked.
fn ended(language: Language) -> Sprint {
    let mut sprint = sprint(language);
    sprint.status = SprintStatus::Completed;
    sprint.phase = Phase::WrapUp;
    sprint.ended_at = Some(at("11:00"));
    sprint.closing.status = Some(CloseoutStatus::Verified);
    sprint.work.commit_sha = SHA.to_owned();
    sprint.work.commit_count = 1;
    sprint.work.commit_shas = vec![SHA.to_owned()];
    sprint.work.commits = vec![SprintCommit {
        sha: SHA.to_owned(),
        short_sha: SHA[..7].to_owned(),
        subject: "[260324-Sprint-09:00] greet.sh: the language is read".to_owned(),
        sprint_tagged: true,
    }];
    sprint.closing.uncommitted_paths = vec!["notes.txt".to_owned()];
    sprint.work.todos[1].progress.status = TodoStatus::Failed;
    sprint.work.todos[1].progress.ended_at = Some(at("10:20"));
    sprint.work.todos[1].progress.summary = "The checks fail.".to_owned();
    sprint.work.todos[1].progress.carry_over_backlog_id =
        Some(ItemId::parse("backlog-20260324-0000000c").unwrap());
    sprint.work.todos[0].progress.status = TodoStatus::Blocked;
    sprint.work.todos[0].progress.summary = "Which server?".to_owned();
    sprint
}

fn reports() -> Reports {
    let report = |clock: &str, role: &str, step: &str, status: &str| RequestEvent {
        timestamp: at(clock),
        kind: crate::domain::request::EventKind::RoleReport,
        actor: role.to_owned(),
        summary: String::new(),
        payload: json!({ "step": step, "result": {
            "role": role, "status": status, "summary": "Read in one place.\n#### forged",
            "insights": ["`LC_ALL` wins"], "artifacts": ["greet.sh"],
            "proposals": {"root_cause_contract": "none", "workflow_transition":
                {"outcome": "advance", "target_step": "qa_validation", "reason": "it is built"}},
        } }),
    };
    let events = [
        report("09:25", "developer", "developer_build", "completed"),
        report("09:35", "developer", "developer_revision", "completed"),
    ];
    let id = RequestId::parse("20260324-00000001").unwrap();
    BTreeMap::from([(id, role_reports(&events))])
}

fn shown(papers: &[Paper]) -> String {
    let texts = papers.iter().map(|paper| {
        let text = match paper.keep {
            Keep::Once => paper.text.clone(),
            Keep::Part => splice(None, paper.heading, paper.name, &paper.text).unwrap().unwrap(),
        };
        format!("=== {}\n{text}\n", paper.path)
    });
    texts.collect()
}

#[test]
fn the_papers_of_a_running_sprint_as_they_read() {
    for language in [Language::En, Language::Ko] {
        let sprint = sprint(language);
        let mut papers = sprint_papers(&sprint, Seoul, &reports()).unwrap();
        papers.push(current_sprint(Some(&sprint), Language::En).unwrap());
        papers.push(current_sprint(None, language).unwrap());
        insta::assert_snapshot!(format!("running_{}", language.as_str()), shown(&papers));
    }
}

#[test]
fn the_report_and_the_history_as_they_read() {
    for language in [Language::En, Language::Ko] {
        let mut sprint = ended(language);
        let plain = final_report(&sprint, Seoul, &reports()).unwrap();
        let history = sprint_history(&sprint, &plain).unwrap();
        assert_eq!(history.text.matches("\n### ").count(), sprint.work.todos.len());
        sprint.closing.report_draft = json!({
            "headline": "The greeting knows its reader's language.",
            "changes": ["`greet.sh` reads `LANG`"],
            "timeline": "- first the reading\n- then the tests",
            "agent_contributions": [{"role": "developer", "what": "built | it"}, "qa: looked"],
            "issues": [{"title": "mail", "reason": "no server"}],
            "achievements": "One place for the language",
            "highlight_artifacts": ["greet.sh"],
            "status": "failed", "commit_count": 99,
        });
        let worded = final_report(&sprint, Seoul, &reports()).unwrap();
        let machine = machine_summary(&sprint).unwrap();
        let all = format!("{}\n=== worded\n{worded}\n=== json\n{machine}", shown(&[history]));
        insta::assert_snapshot!(format!("ended_{}", language.as_str()), all);
    }
}

#[test]
fn the_report_tells_the_time_of_the_workspaces_zone() {
    let sprint = ended(Language::En);
    let seoul = final_report(&sprint, Seoul, &reports()).unwrap();
    let york = final_report(&sprint, chrono_tz::America::New_York, &reports()).unwrap();
    // Midnight in Seoul and nine are the day before in New York.
    assert!(seoul.contains("- Time: 2026-03-24 09:") && seoul.contains("(Asia/Seoul)"), "{seoul}");
    assert!(
        york.contains("- Time: 2026-03-23 20:") && york.contains("(America/New_York)"),
        "{york}"
    );
    assert!(!york.contains("2026-03-24 09:"), "{york}");
}

#[test]
fn nobody_is_praised_who_did_not_work() {
    let mut sprint = ended(Language::En);
    sprint.closing.report_draft = json!({"agent_contributions": [
        {"role": "designer", "what": "drew the screens"},
        {"role": "Developer", "what": "built all of it"},
        {"role": "qa", "what": "looked at all of it"},
        {"role": "Version Controller", "what": "kept it safe"},
        {"role": "planner", "what": "planned it"},
        {"role": "Mina", "what": "asked for it"},
    ]});
    let worked: std::collections::BTreeSet<String> =
        reports().values().flatten().map(|report| report.role.clone()).collect();
    assert_eq!(worked, ["developer".to_owned()].into());
    let text = final_report(&sprint, Seoul, &reports()).unwrap();
    for there in ["built all of it", "planned it", "asked for it"] {
        assert!(text.contains(there), "{text}");
    }
    for not in ["drew the screens", "kept it safe", "looked at all of it"] {
        assert!(!text.contains(not), "{text}");
    }
}

#[test]
fn a_draft_of_any_form_gives_a_report() {
    let mut sprint = ended(Language::En);
    // As most changes are: proven by itself.
    sprint.work.todos[2].progress.proven_through.clear();
    for draft in [
        json!(null),
        json!("prose"),
        json!({"fallback": "no words came"}),
        json!({"changes": {"a": [1, null]}, "agent_contributions": {"qa": ["x"]}, "headline": 7}),
        json!({"changes": [[]], "agent_contributions": [null, 3, {}], "timeline": null}),
    ] {
        sprint.closing.report_draft = draft.clone();
        assert!(final_report(&sprint, Seoul, &Reports::new()).is_ok(), "{draft}");
    }
}

fn item(nth: u32, status: ItemStatus, rank: u32) -> Item {
    let id = ItemId::parse(&format!("backlog-20260324-{nth:08x}")).unwrap();
    let title = format!("Item {nth}");
    let mut item = Item::new(id, &title, "a scope", ItemKind::Feature, at("09:00"));
    item.status = status;
    item.priority_rank = rank;
    item
}

#[test]
fn the_backlog_in_its_order() {
    let mut blocked = item(1, ItemStatus::Blocked, 1);
    blocked.blocked_reason = "Which server?".to_owned();
    blocked.required_inputs = vec!["The name of the server".to_owned()];
    blocked.depends_on = vec![item(3, ItemStatus::Pending, 0).backlog_id];
    let items = [
        blocked,
        item(2, ItemStatus::Selected, 2),
        item(3, ItemStatus::Pending, 0),
        item(4, ItemStatus::Pending, 1),
    ];
    let items: BTreeMap<_, _> =
        (items.into_iter()).map(|it| (it.backlog_id.clone(), Arc::new(it))).collect();
    let papers =
        [backlog(&items, Language::En).unwrap(), backlog(&BTreeMap::new(), Language::Ko).unwrap()];
    insta::assert_snapshot!("backlog", shown(&papers));
}

#[test]
fn a_delivered_item_is_listed_once() {
    let mut state = State::default();
    state.apply(&Change::save(item(1, ItemStatus::Selected, 1)));
    let done = Change::save(item(1, ItemStatus::Done, 1));
    let twice = [done.clone(), done.clone()];
    let listed = completed(&twice, &state).unwrap();
    let [Change::Append { file, text }] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(file, "shared_workspace/completed_backlog.md");
    assert!(text.starts_with("\n### Item 1\n\n- backlog_id: `backlog-20260324-00000001`\n"));
    assert!(text.ends_with('\n'));
    state.apply(&done);
    assert!(completed(&[done], &state).unwrap().is_empty());
    let blocked = Change::save(item(2, ItemStatus::Blocked, 1));
    assert!(completed(&[blocked], &state).unwrap().is_empty());
}

#[test]
fn the_table_of_the_history_keeps_what_others_wrote() {
    let sprint = ended(Language::En);
    let old = "# Our sprints\n\nby hand\n\n| sprint_id | status | milestone_title | started_at | \
               ended_at | todo_count | commit_sha |\n|---|---|---|---|---|---|---|\n\
               | 260101-Sprint-09:00 | completed | 2026-01-01 | 2026-01-02 | 3 | abc |\n\
               | 260401-Sprint-09:00 | failed | M | 2026-04-01 | 2026-04-02 | 1 | N/A |\n\nbelow\n";
    let text = index_with_row(Some(old), &sprint);
    insta::assert_snapshot!("history_index", text);
    assert_eq!(index_with_row(Some(&text), &sprint), text);
    assert!(index_with_row(None, &sprint).starts_with("# Sprint history\n\n| sprint_id |"));
}

#[test]
fn a_folder_never_leaves_the_sprints() {
    let mut sprint = sprint(Language::En);
    for (name, folder) in [
        ("260324-Sprint-09-00", "260324-Sprint-09-00"),
        ("", "260324-Sprint-09-00"),
        ("../../etc", "etc"),
        ("..", "sprint"),
        ("a/b:c d", "a-b-c-d"),
    ] {
        sprint.sprint_folder_name = name.to_owned();
        assert_eq!(sprint_folder(&sprint), format!("shared_workspace/sprints/{folder}"));
    }
}

/// With spans of work for each todo that has begun, side by side and one after another.
fn worked(mut sprint: Sprint) -> Sprint {
    for (nth, todo) in (0_u64..).zip(&mut sprint.work.todos) {
        let Some(begun) = todo.progress.started_at else { continue };
        let begun = begun.plus_seconds(nth * 300);
        todo.progress.started_at = Some(begun);
        let span = |role, from: u64, to: u64| {
            WorkSpan::until(begun.plus_seconds(to), (to - from) * 1_000, role)
        };
        todo.progress.spans = vec![
            span(Role::Planner, 20, 140),
            span(Role::Developer, 200, 700),
            span(Role::VersionController, 710, 800),
            span(Role::Architect, 830, 890),
            span(Role::Qa, 900, 1_100),
            span(Role::ConflictResolver, 1_120, 1_180),
        ];
    }
    sprint
}

type Chart = fn(&Sprint, chrono_tz::Tz) -> Result<Vec<u8>, ChartError>;

#[test]
fn charts_are_pngs_of_any_sprint() {
    let mut empty = sprint(Language::Ko);
    empty.work.todos.clear();
    empty.started_at = None;
    let mut long = ended(Language::En);
    long.ended_at = Some(Timestamp::parse("2026-04-24T09:00:00").unwrap());
    long.work.todos =
        (0..200).map(|nth| todo(nth % 10, "x", TodoStatus::Committed, Some("10:00"))).collect();
    for (name, sprint) in
        [("empty", empty), ("long", long), ("en", ended(Language::En)), ("ko", ended(Language::Ko))]
    {
        let sprint = worked(sprint);
        let lanes_high = 130 + 76 + 46 * lane_order(&sprint).len().clamp(1, 40);
        let charts: [(&str, Chart, usize); 2] =
            [("burndown", burndown, 600), ("lanes", lanes, lanes_high)];
        for (kind, draw, high) in charts {
            let bytes = draw(&sprint, Seoul).unwrap();
            assert_eq!(bytes, draw(&sprint, Seoul).unwrap(), "{kind} {name}");
            let reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
            let size = (reader.info().width as usize, reader.info().height as usize);
            assert_eq!(size, (960, high), "{kind} {name}");
            if let Some(folder) = std::env::var_os("TEAMS_CHARTS") {
                let path = std::path::Path::new(&folder).join(format!("{kind}-{name}.png"));
                crate::platform::files::write(&path, bytes).unwrap();
            }
        }
    }
}
