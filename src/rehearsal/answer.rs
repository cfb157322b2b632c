//! What the rehearsal agent does and answers in each role.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::draft::{Answer, Draft, needs_real_agent, nothing_to_add, say, words, write_plan};
use super::edits::{take_branch_side, take_own_side};
use super::script::{Act, ScriptedAction};
use super::tasks::{self, Job};
use super::{chat, duties};
use crate::agents::prompt::Task;
use crate::agents::rehearsal::Brief;
use crate::domain::criterion::Criterion;
use crate::domain::evidence::CheckVerdict;
use crate::domain::item::Item;
use crate::domain::lifecycle::{StepKind, StepName};
use crate::domain::role::Role;
use crate::platform::files;

/// Does the step and answers. `wrote` is told of every file that was written.
pub(super) fn answer(
    brief: &Brief,
    root: &Path,
    played: Option<&ScriptedAction>,
    simulated: Option<Job>,
    wrote: &mut dyn FnMut(&Path),
) -> Answer {
    let task = &brief.task;
    match played.map(|played| played.act) {
        Some(Act::Control) => {
            let control = played.map(|played| played.control.clone()).unwrap_or_default();
            return Draft::new(task, "Rehearsed a control action.".to_owned())
                .with("control_action", control)
                .done();
        }
        Some(Act::BadPlan) => {
            return Draft::new(task, "Rehearsed a plan with nothing in it.".to_owned()).done();
        }
        Some(Act::Fail) => return scripted_failure(task),
        Some(Act::Block) => return blocked(task, "the script says that a person has to decide"),
        Some(Act::Abstain) => return abstain(task),
        Some(Act::Revise) => return send_back(task, "the script asks for a revision"),
        Some(
            Act::Crash
            | Act::Hang
            | Act::Rubbish
            | Act::Prose
            | Act::WrongContract
            | Act::WriteOutside
            | Act::Flood
            | Act::Sleep
            | Act::Listen
            | Act::Idle
            | Act::Run
            | Act::Ask
            | Act::Propose
            | Act::Say,
        )
        | None => {}
    }
    if let Some(duty) = task.work.duty {
        return duties::answer(task, duty, root, wrote);
    }
    let job = match (simulated, &task.work.item) {
        (Some(job), _) => job,
        // What a sprint delivers is said by the item; the words around it speak of the whole sprint.
        (None, Some(item)) => tasks::job(&item_words(task, item), root, chosen(task)),
        (None, None) => tasks::job(&words(task), root, chosen(task)),
    };
    let Some(kind) = task.kind else {
        return match task.role {
            Role::Orchestrator
            | Role::Research
            | Role::Planner
            | Role::Designer
            | Role::Architect
            | Role::Qa => chat::intake(task, &job, root),
            Role::Developer
            | Role::Parser
            | Role::Sourcer
            | Role::VersionController
            | Role::ConflictResolver => {
                nothing_to_add(task).with("backlog_items", json!([])).done()
            }
        };
    };
    match kind {
        StepKind::Research => nothing_to_add(task)
            .with("research_report", Value::Null)
            .moves("advance", Some(DRAFT), None, "nothing from outside is needed")
            .done(),
        StepKind::Plan => {
            let questions = played.map_or(&Value::Null, |played| &played.questions);
            plan(task, &job, questions, root, wrote)
        }
        StepKind::Advice => {
            nothing_to_add(task).moves("advance", Some(FINALIZE), None, "no objection").done()
        }
        StepKind::Guidance => guidance(task, &job),
        StepKind::Change if played.is_some_and(|played| played.act == Act::Idle) => {
            Draft::new(task, "Rehearsed a build that touches nothing.".to_owned())
                .with("implementation_report", json!("nothing was touched"))
                .moves("advance", Some(REVIEW), None, "said to be built")
                .done()
        }
        StepKind::Change => build(task, &job, root, wrote),
        StepKind::Review => review(task, &job, root),
        StepKind::Verdict => validate(task, &job, root),
        StepKind::Land | StepKind::Sprint(_) => {
            nothing_to_add(task).moves("complete", None, None, "done").done()
        }
    }
}

/// The steps that it aims at, by their names in the lifecycle that is built in.
const DRAFT: StepName = StepName::of("planner_draft");
const FINALIZE: StepName = StepName::of("planner_finalize");
const GUIDANCE: StepName = StepName::of("architect_guidance");
const BUILD: StepName = StepName::of("developer_build");
const REVIEW: StepName = StepName::of("architect_review");
const VERDICT: StepName = StepName::of("qa_validation");
const CLOSEOUT: StepName = StepName::of("closeout");

/// What an item asks for, and what people added since.
fn item_words(task: &Task, item: &Item) -> String {
    let mut words = format!("{}\n{}\n{}", item.scope, item.title, item.summary);
    for said in &task.followups {
        words.push('\n');
        words.push_str(&said.text);
    }
    words
}

/// The task that the planner settled on: "the next one" is another one once it is done.
fn chosen(task: &Task) -> Option<u32> {
    let plan = task.upstream.iter().find(|one| one.role == Role::Planner)?;
    let brief = plan.proposals.get("todo_brief")?.as_str()?;
    let named = ["task ", "작업 "].iter().find_map(|word| brief.strip_prefix(word))?;
    let digits = named.split(':').next()?;
    digits.parse().ok()
}

/// A list in words, in which what stands there twice is counted instead.
fn counted(list: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<(String, usize)> = Vec::new();
    for one in list {
        match seen.iter_mut().find(|(known, _)| *known == one) {
            Some((_, count)) => *count += 1,
            None => seen.push((one, 1)),
        }
    }
    let words = seen.into_iter().map(|(one, count)| match count {
        1 => one,
        _ => format!("{one} (×{count})"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn scripted_failure(task: &Task) -> Answer {
    let why = "the script says that it failed";
    let draft = Draft::new(task, "Rehearsed a failure.".to_owned());
    if task.kind == Some(StepKind::Verdict) {
        return verdict(draft, "fail", &[row("the script", why, "fail")], why)
            .moves("reopen", None, Some("verification"), why)
            .done();
    }
    draft.status("failed", why.to_owned()).moves("", None, None, why).done()
}

fn blocked(task: &Task, why: &str) -> Answer {
    let draft = Draft::new(task, format!("Blocked: {why}."))
        .status("blocked", why.to_owned())
        .with("required_inputs", json!([why]));
    let draft = if task.kind == Some(StepKind::Verdict) {
        verdict(draft, "blocked", &[row("the request", why, "not_checked")], why)
    } else {
        draft
    };
    draft.moves("block", None, None, why).done()
}

fn abstain(task: &Task) -> Answer {
    let why = "only a person can see it";
    let draft = Draft::new(task, "Left to a person.".to_owned());
    verdict(draft, "pass", &[row("the script", why, "abstain")], "")
        .moves("advance", Some(CLOSEOUT), None, why)
        .done()
}

fn send_back(task: &Task, why: &str) -> Answer {
    let draft = Draft::new(task, format!("Sent back: {why}."));
    let draft = if task.kind == Some(StepKind::Verdict) {
        verdict(draft, "fail", &[row("the request", why, "fail")], why)
    } else {
        draft.with("code_review", json!([{"file": "", "problem": why, "wanted": "look again"}]))
    };
    draft.moves("reopen", None, Some("implementation"), why).done()
}

fn plan(
    task: &Task,
    job: &Job,
    questions: &Value,
    root: &Path,
    wrote: &mut dyn FnMut(&Path),
) -> Answer {
    match job {
        Job::Unknown | Job::NoSuchTask => return needs_real_agent(task),
        Job::Task(_) | Job::Literal(_) => {}
    }
    let title = job.title(&task.language);
    let edits = job.edits();
    let lines: Vec<String> =
        edits.iter().map(|edit| format!("- {}", edit.describe(&task.language))).collect();
    let mut accepted: Vec<String> =
        edits.iter().map(|edit| edit.describe(&task.language)).collect();
    accepted.dedup();
    accepted.push(say(task, "the project's checks pass", "프로젝트의 검사가 통과한다"));
    let text = format!(
        "# {title}\n\nRequest {id}, planned by the rehearsal agent.\n\n## Acceptance criteria\n\n{criteria}\n- the project's checks pass\n\n## Changes\n\n{criteria}\n",
        id = task.request_id,
        criteria = lines.join("\n"),
    );
    let done = task.step == Some(DRAFT)
        && task.diff.is_empty()
        && edits.iter().all(|edit| edit.is_done(root));
    let mut draft = Draft::new(
        task,
        if done {
            say(
                task,
                format!("Nothing to do: {title} is already done."),
                format!("할 일이 없습니다: 이미 끝난 작업입니다 ({title})."),
            )
        } else {
            say(task, format!("Planned {title}."), format!("계획했습니다: {title}."))
        },
    );
    for document in task.documents.iter().filter(|one| one.writable) {
        if let Err(error) = write_plan(&document.path, &text) {
            return Draft::new(task, error.to_string())
                .status("failed", error.to_string())
                .moves("", None, None, "")
                .done();
        }
        wrote(&document.path);
        draft.artifacts.push(document.name.clone());
    }
    // What the runtime keeps was looked at as well.
    let kept = task.documents.iter().filter(|one| !one.writable && files::exists(&one.path));
    draft.artifacts.extend(kept.map(|one| one.name.clone()));
    if done {
        let note = draft.summary.clone();
        return draft
            .with("planning_note", json!(note))
            .moves("complete", Some(CLOSEOUT), None, "already done")
            .done();
    }
    draft
        .with("todo_brief", json!(title))
        .with("acceptance_criteria", json!(accepted))
        .with("allowed_paths", json!(edits.iter().map(|edit| &edit.path).collect::<BTreeSet<_>>()))
        .with("questions", questions.clone())
        .moves("advance", Some(GUIDANCE), None, "the plan stands")
        .done()
}

fn guidance(task: &Task, job: &Job) -> Answer {
    if job.edits().is_empty() {
        return needs_real_agent(task);
    }
    let changes = counted(job.edits().iter().map(|edit| edit.describe(&task.language)));
    Draft::new(
        task,
        say(task, format!("Build it so: {changes}."), format!("구현 방법: {changes}.")),
    )
    .with("implementation_guidance", json!(changes))
    .moves("advance", Some(BUILD), None, "nothing stands in the way")
    .done()
}

fn build(task: &Task, job: &Job, root: &Path, wrote: &mut dyn FnMut(&Path)) -> Answer {
    if job.edits().is_empty() {
        return needs_real_agent(task);
    }
    let mut own_sides = BTreeMap::new();
    for path in task.conflict.iter().flat_map(|conflict| &conflict.paths) {
        match take_branch_side(root, path) {
            Ok(own) => drop(own_sides.insert(path.as_str(), own)),
            Err(error) => return blocked(task, &error.to_string()),
        }
    }
    for edit in job.edits() {
        let mut done = edit.apply(root);
        if done.is_err()
            && let Some(own) = own_sides.remove(edit.path.as_str()).flatten()
        {
            done = take_own_side(root, &edit.path, &own).and_then(|()| edit.apply(root));
        }
        if let Err(error) = done {
            return blocked(task, &error.to_string());
        }
        wrote(Path::new(&edit.path));
    }
    let title = job.title(&task.language);
    let paths: BTreeSet<&str> = job.edits().iter().map(|edit| edit.path.as_str()).collect();
    let paths = paths.into_iter().collect::<Vec<_>>().join(", ");
    Draft::new(
        task,
        say(
            task,
            format!("Built: {title}. Changed: {paths}."),
            format!("만들었습니다: {title}. 바꾼 파일: {paths}."),
        ),
    )
    .with("implementation_report", json!(format!("literal edits in {paths}")))
    .moves("advance", Some(REVIEW), None, "built")
    .done()
}

fn review(task: &Task, job: &Job, root: &Path) -> Answer {
    let missing = job.edits().iter().find(|edit| !edit.is_done(root));
    if let Some(edit) = missing {
        let missing = edit.describe(&task.language);
        let why = say(
            task,
            format!("the change does not {missing}"),
            format!("변경에 다음이 없습니다: {missing}"),
        );
        return send_back(task, &why);
    }
    if task.diff.trim().is_empty() && job.edits().is_empty() {
        return send_back(task, "the diff is empty");
    }
    Draft::new(
        task,
        say(
            task,
            "Reviewed: the change is what was asked for.",
            "검토 완료: 요청한 변경과 같습니다.",
        ),
    )
    .with("code_review", json!([]))
    .moves("advance", Some(VERDICT), None, "no findings")
    .done()
}

fn row(criterion: &str, evidence: &str, result: &str) -> Value {
    json!({"criterion": criterion, "source": "request", "evidence": evidence, "result": result})
}

fn verdict<'a>(draft: Draft<'a>, decision: &str, seen: &[Value], finding: &str) -> Draft<'a> {
    let rows = by_criterion(&draft.task.criteria, seen);
    let named = |result: &str| -> Vec<Value> {
        let matching = rows.iter().filter(|row| row["result"] == result);
        matching.map(|row| row["criterion"].clone()).collect()
    };
    let findings: Vec<&str> = if decision == "pass" { Vec::new() } else { vec![finding] };
    draft.with(
        "qa_validation",
        json!({
            "methodology": "evidence_matrix",
            "decision": decision,
            "evidence_matrix": rows,
            "passed_checks": named("pass"),
            "findings": findings,
            "residual_risks": [],
            "not_checked": named("not_checked"),
        }),
    )
}

/// A row for each criterion that is not a person's, where there are any. The rehearsal agent does not understand them:
/// each is as good as the worst that was seen.
fn by_criterion(criteria: &[Criterion], seen: &[Value]) -> Vec<Value> {
    if criteria.iter().all(Criterion::is_manual) {
        return seen.to_vec();
    }
    let Some(worst) = seen.iter().find(|row| row["result"] != "pass").or(seen.first()) else {
        return Vec::new();
    };
    let told = |key: &str| worst[key].as_str().unwrap_or_default();
    let evidence = format!("{}: {}", told("criterion"), told("evidence"));
    let own = criteria.iter().zip(1..).filter(|(criterion, _)| !criterion.is_manual());
    own.map(|(_, number)| row(&format!("C-{number}"), &evidence, told("result"))).collect()
}

/// Passes only what was seen: the edits in the files, and the runtime's own record of the checks.
fn validate(task: &Task, job: &Job, root: &Path) -> Answer {
    let mut rows = Vec::new();
    for edit in job.edits() {
        let result = if edit.is_done(root) { "pass" } else { "fail" };
        rows.push(row(&edit.describe(&task.language), "the text in the worktree", result));
    }
    for check in task.evidence.iter().flat_map(|evidence| &evidence.checks) {
        let (seen, result) = match check.verdict {
            CheckVerdict::Passed => ("it passed", "pass"),
            CheckVerdict::Failed if check.is_red_before() => {
                ("nothing fails but what failed before", "pass")
            }
            CheckVerdict::Failed => ("it failed", "fail"),
            CheckVerdict::TimedOut => ("it ran into its time limit", "fail"),
            CheckVerdict::CutOff => ("it was cut off", "fail"),
            CheckVerdict::NotStarted => ("it could not be started", "fail"),
            CheckVerdict::EnvironmentFault => ("it met the person's checkout", "fail"),
        };
        rows.push(row(&format!("check {}", check.name), seen, result));
    }
    if rows.is_empty() {
        return blocked(task, "there is neither a literal change nor a check to judge by");
    }
    let failed = rows.iter().find(|row| row["result"] == "fail");
    let failed = failed.map(|row| row["criterion"].as_str().unwrap_or_default().to_owned());
    match failed {
        Some(criterion) => {
            let why = format!("not met: {criterion}");
            let summary =
                say(task, format!("Not met: {criterion}."), format!("충족되지 않음: {criterion}."));
            verdict(Draft::new(task, summary), "fail", &rows, &why)
                .moves("reopen", None, Some("implementation"), &why)
                .done()
        }
        None => {
            let summary = say(task, "Every criterion is met.", "모든 기준을 충족했습니다.");
            verdict(Draft::new(task, summary), "pass", &rows, "")
                .moves("advance", Some(CLOSEOUT), None, "every criterion is met")
                .done()
        }
    }
}
