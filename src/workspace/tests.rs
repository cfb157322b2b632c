//! Tests of reading and editing a workspace; the rows are those of `spec/teams.md` 14.1.

use std::collections::BTreeSet;
use std::path::Path;

use super::edit::{EditError, set_role_defaults, set_scalar, unset, value_at};
use super::init::{Options, init};
use super::open::parse;
use super::*;
use crate::domain::config::{DiscordConfig, Reasoning, RuntimeConfig, Voice};
use crate::domain::ids::UserId;
use crate::domain::policy::Right;
use crate::domain::role::Role;
use crate::platform::files;

fn runtime(text: &str) -> Result<RuntimeConfig, ConfigError> {
    parse(Path::new(RUNTIME_FILE), text, RuntimeConfig::check)
}

fn discord(text: &str) -> Result<DiscordConfig, ConfigError> {
    parse(Path::new(DISCORD_FILE), text, DiscordConfig::check)
}

/// The error as a person sees it: the line, the hint, the place.
fn shown(error: &ConfigError) -> String {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
    let snippet = error.snippet().map(|snippet| format!("\n{snippet}"));
    format!("{error}{}{}", hint.unwrap_or_default(), snippet.unwrap_or_default())
}

fn runtime_error(rest: &str) -> ConfigError {
    runtime(&format!("sprint: {{id: a}}\n{rest}")).unwrap_err()
}

#[test]
fn an_error_shows_place_key_expectation_and_nearest_word() {
    let errors = [
        runtime_error("project:\n  pth: x\n"),
        runtime("sprint:\n  id: a\n  mode: hybird # c\n").unwrap_err(),
        runtime_error("role_defaults:\n  developr: {model: x}\n"),
        runtime_error("role_defaults:\n  developer: {modl: x}\n"),
        runtime_error("checks:\n  - name: t\n    command: []\n"),
        runtime_error("sprint: {id: b}\n"),
        runtime_error("people: {owner: \"@mina\"}\n"),
        runtime("sprint: {id: a, discovery_actions: [x]}\n").unwrap_err(),
        runtime("sprint: {id: [\n").unwrap_err(),
        runtime("").unwrap_err(),
        discord(&seven_bots(Role::Qa)).unwrap_err(),
        discord("relay_channel_id: 1\n").unwrap_err(),
    ];
    let all: Vec<String> = errors.iter().map(shown).collect();
    insta::assert_snapshot!("config_errors", all.join("\n\n"));
}

#[test]
fn what_does_not_load_c11_c12_c13() {
    for (row, text, said) in [
        ("C11", "approval: {x: 1}", "people.approve"),
        ("C11", "actions: {t: {command: [a], approval_required: false}}", "people.approve"),
        ("C12", "research_defaults: x", "expected a mapping"),
        ("C12", "research_defaults: {completion_timeout: 0}", "above 0"),
        ("C12", "research_defaults: {files: x}", "sequence"),
        ("2.2", "actions: {t: {command: []}}", "program"),
        ("2.2", "actions: {t: {command: [a], lifecycle: later}}", "foreground"),
        ("2.2", "people: {owner: me}", "Discord id"),
        ("2.2", "people: {ask: {user: []}}", "did you mean `users`"),
        ("2.2", "checks: [{name: a, command: [x], timeout: 5}]", "did you mean `timeout_seconds`"),
        ("2.2", "checks: [{name: a, command_line: [x]}]", "did you mean `command`"),
        ("2.2", "agents: {roles: {developer: codx}}", "did you mean `codex`"),
        ("2.2", "checks: [{name: a, command: [x]}, {name: a, command: [y]}]", "already"),
        ("checks", "checks: [{name: a, command: [x], networks: off}]", "did you mean `network`"),
        ("checks", "checks: [{name: a, command: [x], network: loopback}]", "`off` or `host`"),
        (
            "checks",
            "checks: [{name: a, command: [x], env: {API_KEY: a}}]",
            "is named like a secret",
        ),
        ("checks", "checks: [{name: a, command: [x], read: [sdk]}]", "expected an absolute path"),
        (
            "checks",
            "checks: [{name: a, command: [x], read: [/sdk/../etc]}]",
            "expected an absolute path",
        ),
        ("checks", "cary: [.venv]", "did you mean `carry`"),
        ("checks", "carry: [../deps]", "expected a folder in the project"),
        ("checks", "carry: [.git]", "expected a folder in the project"),
        ("checks", "carry: [target]", "holds what a build makes"),
        ("checks", "carry: [web/dist]", "holds what a build makes"),
        ("checks", "carry: [dist/js]", "holds what a build makes"),
        ("checks", "carry: [.venv, .venv]", "is in the list already"),
        ("gates", "gates: {guarded: [/deploy]}", "is no path below the project"),
        ("gates", "gates: {guarded: ['']}", "is blank"),
        ("gates", "gates: {plan: {feature: ask, feature: allow}}", "duplicate entry"),
        ("2.2", "project: {branch: a b}", "branch"),
        ("2.2", "commits: {name: 'a <b>'}", "a name such as"),
        ("2.2", "commits: {email: ''}", "an address such as"),
        ("2.2", "commits: {mail: a@b}", "did you mean `email`"),
        ("2.2", "limits: {turns: 0}", "above 0"),
        ("2.2", "limits: {rate_limit_retries: 101}", "above 100"),
        ("2.2", "limits: {rate_limit_retries: 0}", "above 0"),
        ("2.2", "limits: {rate_limit_wait_seconds: 604801}", "above 604800"),
        ("2.2", "limits: {rate_limit_waits: 5}", "did you mean `rate_limit"),
        ("retention", "retention: {files_days: 0}", "above 0"),
        ("train", "limits: {parallel_runs: 0}", "above 0"),
        ("train", "limits: {parallel_runs: -2}", "above 0"),
        ("train", "limits: {check_runs: 0}", "above 0"),
        ("train", "limits: {check_runs: -1}", "above 0"),
        ("train", "train: {batch: 0}", "above 0"),
        ("train", "train: {batch: -8}", "above 0"),
        ("train", "train: {prove: all}", "`each` or `tip`"),
        ("retention", "retention: {file_days: 9}", "did you mean `files_days`"),
    ] {
        let shown = shown(&runtime_error(text));
        assert!(shown.contains(said), "{row} {text}: {shown}");
    }
    for (text, said) in [
        ("mode: hourly", "wall_clock"),
        ("overlap_policy: queue", "no_overlap"),
        ("cutoff_time: \"7:5\"", "22:00"),
        ("interval_minutes: -5", "1 to 10080"),
        ("interval_minutes: 0", "1 to 10080"),
        ("wip_limit: 0", "above 0"),
        ("wip_limit: -3", "above 0"),
        ("timezone: Mars/Base", "Asia/Seoul"),
    ] {
        let shown = shown(&runtime(&format!("sprint:\n  id: a\n  {text}\n")).unwrap_err());
        assert!(shown.contains(said) && shown.contains(":3:"), "C13 {text}: {shown}");
    }
}

#[test]
fn an_absent_interval_is_180_and_the_older_words_load() {
    let config = runtime("sprint: {id: a, interval_minutes: , mode: rolling}").unwrap();
    assert_eq!(config.sprint.interval_minutes.get(), 180);
    let config = runtime(
        "sprint: {id: '2026-W13', interval_minutes: 180, timezone: Asia/Seoul, mode: hybrid,\n  \
         start_mode: auto, cutoff_time: '22:00', overlap_policy: no_overlap,\n  \
         ingress_mode: backlog_first, discovery_scope: broad_scan, discovery_actions: [t]}\n\
         ingress: {dm: true, mentions: true}\nallowed_guild_ids: [1, '2']\n\
         role_defaults: {developer: {model: m, reasoning: xhigh}}\n\
         research_defaults: {completion_timeout: 600, callback_timeout: 1200.5, cleanup: false}\n\
         actions: {t: {command: [make], lifecycle: managed, domain: ci, allowed_params: [x]}}\n",
    );
    let config = config.unwrap_or_else(|error| panic!("{}", shown(&error)));
    assert_eq!(config.role_defaults[&Role::Developer].reasoning, Some(Reasoning::Xhigh));
    assert_eq!(config.allowed_guild_ids.len(), 2);
}

fn seven_bots(without: Role) -> String {
    let mut text = "relay_channel_id: \"900000000000000001\"\nagents:\n".to_owned();
    for (at, role) in Role::PUBLIC.into_iter().enumerate() {
        if role != without {
            text.push_str(&format!("  {role}: {{token_env: T{at}, bot_id: \"90{at}\"}}\n"));
        }
    }
    text
}

#[test]
fn discord_files_that_do_not_load_c14() {
    let missing = discord(&seven_bots(Role::Qa)).unwrap_err();
    assert!(missing.to_string().contains("`agents.qa` is missing"));
    let whole = seven_bots(Role::Parser);
    assert_eq!(discord(&whole).unwrap().voice(), Voice::Bots);
    assert!(discord(&whole.replace(", bot_id: \"906\"", "")).is_ok(), "setup finds it out");
    for (from, to, said) in [
        ("\"906\"", "qa", "Discord id"),
        ("\"900000000000000001\"", "abc", "Discord id"),
        ("token_env: T6, ", "", "missing field `token_env`"),
        ("T6", "a.b-c", "never the secret itself"),
    ] {
        let shown = shown(&discord(&whole.replace(from, to)).unwrap_err());
        assert!(shown.contains(said), "{to}: {shown}");
        assert!(!shown.lines().next().unwrap().contains("a.b-c"));
    }
    let shown = shown(&discord("token_env: T\n").unwrap_err());
    assert!(shown.contains("relay_channel_id"), "{shown}");
}

#[test]
fn channels_fall_back_c15() {
    let config = discord("token_env: T\nrelay_channel_env: RELAY\n").unwrap();
    let channels = config.channels(|name| (name == "RELAY").then(|| "7".to_owned())).unwrap();
    assert_eq!((channels.startup.0, channels.report.0), (7, 7));
    assert!(config.channels(|_| None).unwrap_err().message.contains("RELAY is not set"));
    let config = discord("token_env: T\nrelay_channel_id: 1\nstartup_channel_id: 2\n").unwrap();
    assert_eq!(config.channels(|_| None).unwrap().report.0, 2);
}

#[test]
fn what_the_commands_of_checks_name_is_guarded_whatever_is_checked_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("teams_generated");
    init(&root, &Options::default()).unwrap();
    let workspace = load(&root).unwrap();
    let text = format!(
        "checks: [{{name: a, command: [bash, -c, 'cd web && ./scripts/ci.sh; python3 -u tests/run.py data.json; make -C sub all']}}, \
         {{name: b, command: ['{}/run.py']}}]\nprepare: [{{name: c, command: [env, A=1, ./setup.sh, uv.lock], files: [uv.lock]}}]",
        folder.path().display()
    );
    let gates = workspace.gates(&runtime(&format!("sprint: {{id: a}}\n{text}")).unwrap());
    let words = gates.command_words;
    for word in ["./scripts/ci.sh", "run.py", "setup.sh"] {
        assert!(words.iter().any(|one| one == word), "{word}: {words:?}");
    }
    assert!(!words.iter().any(|one| one == "uv.lock"), "it has a gate of its own: {words:?}");
    assert!(gates.guarded_names.contains("Makefile"), "{:?}", gates.guarded_names);
}

#[test]
fn what_init_wrote_loads_and_may_not_run_c16() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("teams_generated");
    let owner = Some(UserId(42));
    init(&root, &Options { owner, ..Options::default() }).unwrap();
    let workspace = load(&root).unwrap_or_else(|error| panic!("{}", shown(&error)));
    assert_eq!(workspace.project_root(), folder.path());
    assert!(workspace.policy_problem.is_none());
    let policy = workspace.policy(BTreeSet::from([Role::Qa]), false).unwrap();
    assert!(policy.rights[&Right::Administer].users.contains(&UserId(42)));
    assert!(policy.rights[&Right::Ask].users.is_empty());
    let error = workspace.refuse_placeholders().unwrap_err();
    assert!(shown(&error).contains("`guild_id`"), "{}", shown(&error));
    let allowed = [("TEAMS_RUNTIME_ALLOW_PLACEHOLDER_IDS".to_owned(), "1".to_owned())];
    let workspace = Workspace { environment: Environment::of(allowed), ..workspace };
    workspace.refuse_placeholders().unwrap();
    let missing = workspace.tokens().unwrap_err();
    assert!(missing.to_string().contains("TEAMS_DISCORD_TOKEN is not set"));
    for role in Role::ALL {
        workspace.role(role).unwrap();
    }
}

#[test]
fn a_policy_file_says_how_many_reviews_there_are_and_a_bad_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), &Options::default()).unwrap();
    let path = folder.path().join(POLICY_FILE);
    files::create_dir_all(path.parent().unwrap()).unwrap();
    let limit = |number: &str| {
        let text = format!("workflow_contract: {{implementation_review_cycle_limit: {number}}}\n");
        files::write(&path, text).unwrap();
        load(folder.path()).unwrap()
    };
    assert_eq!(limit("5").review_cycles, Some(5));
    let bad = limit("many");
    assert_eq!(bad.review_cycles, None);
    let said = bad.policy_problem.unwrap().to_string();
    assert!(said.contains("policy.yaml:1:") && said.contains("review_cycle_limit"), "{said}");
    // What else an older one holds means nothing any more.
    files::write(&path, "version: 2\nweights: {owned_intent: 5}\n").unwrap();
    let older = load(folder.path()).unwrap();
    assert!(older.review_cycles.is_none() && older.policy_problem.is_none());
}

/// The built-in lifecycle with a step of a workspace's own between the review and QA.
const WITH_SECURITY: &str = "  security_review:
    role: architect
    result: review
    needs: [commit]
    counts: security
    on:
      pass: qa_validation
      revise: {to: developer_revision, within: security}
      no_change: developer_build

";

fn with_security() -> String {
    use crate::domain::lifecycle::BUILT_IN;
    let edited = BUILT_IN
        .replace(
            "      pass: qa_validation\n      revise: {to: developer_revision, within: review}",
            "      pass: security_review\n      revise: {to: developer_revision, within: review}",
        )
        .replace("  conflicts: 3\n", "  conflicts: 3\n  security: 2\n");
    edited.replace(
        "  developer_revision:\n    role",
        &format!("{WITH_SECURITY}  developer_revision:\n    role"),
    )
}

#[test]
fn a_workspace_may_have_a_lifecycle_of_its_own_and_every_fault_is_named() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), &Options::default()).unwrap();
    let root = folder.path();
    let built_in = load(root).unwrap().lifecycle;
    files::create_dir_all(&root.join("lifecycles")).unwrap();
    let path = root.join(lifecycle::LIFECYCLE_FILE);
    files::write(&path, with_security()).unwrap();
    let error = load(root).unwrap_err();
    let said = format!("{error} {:?}", error.hint());
    assert!(said.contains("request.yaml:"), "{said}");
    assert!(said.contains("prompts/steps/security_review.md"), "{said}");
    files::create_dir_all(&root.join("prompts/steps")).unwrap();
    files::write(&root.join("prompts/steps/security_review.md"), "Look for holes.\n").unwrap();
    let own = load(root).unwrap().lifecycle;
    assert_ne!(own.digest(), built_in.digest());
    let names: Vec<String> = own.steps().map(|step| step.name.to_string()).collect();
    assert!(names.contains(&"security_review".to_owned()), "{names:?}");
    // What is said of its steps is said of steps that it has.
    let runtime = root.join(RUNTIME_FILE);
    let text = files::read_text(&runtime).unwrap();
    let profile = "profiles: {steps: {security_review: quality}}";
    let with = |profile: &str| text.replace("profiles: {}", profile);
    files::write(&runtime, with(profile)).unwrap();
    load(root).unwrap_or_else(|error| panic!("{}", shown(&error)));
    let misspelled = profile.replace("security", "securty");
    files::write(&runtime, with(&misspelled)).unwrap();
    let said = shown(&load(root).unwrap_err());
    assert!(
        said.contains("no step \"securty_review\"") && said.contains("its steps are"),
        "{said}"
    );
    files::write(&runtime, &text).unwrap();
    // Several faults are told at once, each with its line.
    let wrong = with_security()
        .replace("within: security}", "within: secrity}")
        .replace("answered: closeout", "answered: closout");
    files::write(&path, wrong).unwrap();
    let problems = lifecycle::check(root).unwrap().unwrap_err();
    let said: Vec<String> = problems.iter().map(|it| format!("{it} {:?}", it.hint())).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(
        said[0].contains("there is no step `closout`") && said[0].contains("`closeout`"),
        "{said:#?}"
    );
    assert!(said.iter().any(|it| it.contains("there is no counter `secrity`")), "{said:#?}");
    assert!(said.iter().all(|it| it.contains("request.yaml:")), "{said:#?}");
}

#[test]
fn a_link_that_leads_nowhere_is_not_an_absent_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    init(root, &Options::default()).unwrap();
    files::create_dir_all(&root.join("lifecycles")).unwrap();
    for name in [lifecycle::LIFECYCLE_FILE, "routes.yaml", "policy.yaml", RUNTIME_FILE] {
        let path = root.join(name);
        let before = files::read_text_if_present(&path).unwrap();
        files::remove_file(&path).unwrap();
        files::symlink(Path::new("/away/from/here"), &path).unwrap();
        if name == "policy.yaml" {
            // It says what an older workspace wanted, and stops nothing.
            load(root).unwrap();
        } else {
            let refused = load(root).unwrap_err().to_string();
            assert!(refused.contains(name) && !refused.contains("no workspace"), "{refused}");
        }
        if name == RUNTIME_FILE {
            init(root, &Options::default()).unwrap_err();
            assert!(files::read_link(&path).is_ok(), "the link of a person stays");
        }
        files::remove_file(&path).unwrap();
        if let Some(text) = before {
            files::write(&path, text).unwrap();
        }
        load(root).unwrap();
    }
    // What is no file is not read at all.
    files::remove_file(&root.join("routes.yaml")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("routes.yaml"), mode).unwrap();
    assert!(load(root).unwrap_err().to_string().contains("not a file"));
}

#[test]
fn a_file_that_is_too_large_is_not_parsed() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), &Options::default()).unwrap();
    files::write(&folder.path().join(RUNTIME_FILE), "[".repeat(1 << 21)).unwrap();
    assert!(matches!(load(folder.path()), Err(ConfigError::TooLarge { .. })));
    files::remove_file(&folder.path().join(RUNTIME_FILE)).unwrap();
    assert!(load(folder.path()).unwrap_err().to_string().contains("no workspace here"));
}

#[test]
fn the_folder_that_is_meant_c01_to_c05() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    assert_eq!(resolve(None, &cwd), cwd.join("teams_generated"), "C04");
    for (row, place) in
        [("C03", "workspace/teams_generated"), ("C02", "teams_generated"), ("C01", "")]
    {
        let at = cwd.join(place);
        files::create_dir_all(&at).unwrap();
        for file in [RUNTIME_FILE, DISCORD_FILE] {
            files::write(&at.join(file), "").unwrap();
        }
        assert_eq!(resolve(None, &cwd), if place.is_empty() { cwd.clone() } else { at }, "{row}");
    }
    assert_eq!(resolve(Some(Path::new("/x/../y")), &cwd), Path::new("/y"));
    assert_eq!(project_default(Path::new("/x/teams_generated")), Path::new("/x"), "C05");
    assert_eq!(project_default(Path::new("/x/ws")), Path::new("/x/ws"), "C05");
}

#[test]
fn setting_a_value_keeps_comments_c17_c18() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), &Options::default()).unwrap();
    let path = folder.path().join(RUNTIME_FILE);
    let from = "planner: {model: gpt-5.5, reasoning: high}";
    let fresh = files::read_text(&path).unwrap();
    let before = fresh.replace("role_defaults: {}", &format!("role_defaults:\n  {from} # ours"));
    files::write(&path, &before).unwrap();
    set_role_defaults(folder.path(), Role::Planner, Some("m1"), None).unwrap();
    let after = files::read_text(&path).unwrap();
    assert_eq!(after, before.replace(from, "planner: {model: m1, reasoning: high}"));
    let nothing = set_role_defaults(folder.path(), Role::Planner, None, None);
    assert!(matches!(nothing, Err(EditError::Nothing)));
    assert_eq!(files::read_text(&path).unwrap(), after);
}

#[test]
fn setting_a_value_in_every_form_of_a_file() {
    let key = ["role_defaults", "qa", "model"];
    for (from, to) in [
        ("a: 1 # c\n", "a: 1 # c\nrole_defaults:\n  qa:\n    model: m\n"),
        ("role_defaults: {}\n", "role_defaults: {qa: {model: m}}\n"),
        ("role_defaults: {qa: {}} # c\n", "role_defaults: {qa: {model: m}} # c\n"),
        (
            "role_defaults: {qa: {reasoning: low}}\n",
            "role_defaults: {qa: {reasoning: low, model: m}}\n",
        ),
        (
            "role_defaults:\n  qa:\n    model: old # c\nb: 2\n",
            "role_defaults:\n  qa:\n    model: m # c\nb: 2\n",
        ),
        (
            "role_defaults:\n  planner: {model: x}\nb: 2\n",
            "role_defaults:\n  planner: {model: x}\n  qa:\n    model: m\nb: 2\n",
        ),
        ("role_defaults:\nb: 2\n", "role_defaults:\n  qa:\n    model: m\nb: 2\n"),
    ] {
        assert_eq!(set_scalar(from, &key, "m").as_deref(), Some(to), "{from}");
    }
    assert_eq!(set_scalar("a: x\n", &["a"], "no: {").as_deref(), Some("a: \"no: {\"\n"));
    assert_eq!(set_scalar("a: [1,\n  2]\n", &["a", "b"], "m"), None);
    assert_eq!(set_scalar("a: &x {b: 1}\nc: *x\n", &["c", "b"], "m"), None);
    assert_eq!(value_at("a:\n  - b: 1\n  - b: 2 # c\n    c: 3\n", "a.1.c"), Some("3"));
}

#[test]
fn a_key_goes_with_all_that_stands_below_it() {
    let entries = "prepare:\n  - name: packages\n    command: [npm, ci]\n";
    let text = format!("a: 1\n{entries}# about b\nb: 2\n");
    assert_eq!(unset(&text, "prepare").as_deref(), Some("a: 1\n# about b\nb: 2\n"));
    assert_eq!(unset(&text, "b").unwrap(), format!("a: 1\n{entries}# about b\n"));
    assert_eq!(unset(&format!("a: 1\n{entries}"), "prepare").as_deref(), Some("a: 1\n"));
    assert_eq!(unset(&text, "c"), None);
}
