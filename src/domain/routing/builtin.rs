//! The built-in capability table (`spec/teams.md` 7.6).

use std::collections::BTreeMap;

use super::{Capability, RequestStateClass as State, RoutingPhase as Phase};
use crate::domain::role::Role;

/// The capabilities of the seven public roles.
pub(super) fn capabilities() -> BTreeMap<Role, Capability> {
    BTreeMap::from([
        (Role::Orchestrator, orchestrator()),
        (Role::Research, research()),
        (Role::Planner, planner()),
        (Role::Designer, designer()),
        (Role::Architect, architect()),
        (Role::Developer, developer()),
        (Role::Qa, qa()),
    ])
}

/// Terms separated by bars.
fn terms(list: &str) -> Vec<String> {
    list.split('|').map(|term| term.trim().to_owned()).filter(|term| !term.is_empty()).collect()
}

fn orchestrator() -> Capability {
    Capability {
        summary: "Governs the flow of requests and sprints".to_owned(),
        owned_intents: Vec::new(),
        routing_signals: terms("sprint | workflow | orchestration | routing"),
        strongest_for: terms("workflow governance | sprint oversight"),
        strongest_domain_signals: Vec::new(),
        preferred_skills: terms(
            "agent_utilization | sprint_orchestration | handoff_merging | status_reporting \
             | sprint_closeout",
        ),
        preferred_skill_signals: Vec::new(),
        behavior_traits: terms("governing | boundary-aware | state-first"),
        behavior_trait_signals: Vec::new(),
        phase_fit: vec![Phase::Planning, Phase::Resume, Phase::Closeout],
        request_state_fit: vec![State::PlanningOnly, State::CloseoutReady, State::BlockedResume],
        allowed_next_roles: vec![
            Role::Research,
            Role::Planner,
            Role::Designer,
            Role::Architect,
            Role::Developer,
            Role::Qa,
        ],
        routing_priority: 0,
        should_not_handle: terms(
            "planner-owned backlog persistence | developer implementation work \
             | version_controller commit execution",
        ),
    }
}

fn research() -> Capability {
    Capability {
        summary: "Finds outside facts and says where they come from".to_owned(),
        owned_intents: Vec::new(),
        routing_signals: terms(
            "research | sources | citations | evidence | benchmark | comparison | landscape \
             | current | latest | recent | 리서치 | 출처 | 근거 | 비교 | 최신",
        ),
        strongest_for: Vec::new(),
        strongest_domain_signals: terms(
            "external facts | current state | market context | vendor comparison \
             | library comparison | regulation | standard | evidence",
        ),
        preferred_skills: terms("deep_research | source_synthesis | evidence_validation"),
        preferred_skill_signals: Vec::new(),
        behavior_traits: Vec::new(),
        behavior_trait_signals: terms("evidence | sources | validate | compare | research"),
        phase_fit: vec![Phase::Planning, Phase::Resume],
        request_state_fit: vec![State::PlanningOnly, State::BlockedResume, State::ExecutionOpened],
        allowed_next_roles: vec![Role::Planner],
        routing_priority: 5,
        should_not_handle: terms("repo-only implementation | direct code edits | commit execution"),
    }
}

fn planner() -> Capability {
    Capability {
        summary: "Owns plans, the backlog and their documents".to_owned(),
        owned_intents: terms("plan"),
        routing_signals: terms(
            "plan | planning | backlog | milestone | scope | strategy | document | 기획 \
             | 백로그 | 우선순위 | 문서",
        ),
        strongest_for: terms("planning requests | backlog management"),
        strongest_domain_signals: terms(
            "acceptance criteria | requirements | backlog item | todo | milestone | phase \
             | dependency | priority | scope | spec | 기획 | 요구사항",
        ),
        preferred_skills: terms(
            "documentation | backlog_management | backlog_decomposition | sprint_planning",
        ),
        preferred_skill_signals: terms("markdown"),
        behavior_traits: terms("structured | document-first | scope-shaping"),
        behavior_trait_signals: terms("organize | decompose | prioritize | 정리"),
        phase_fit: vec![Phase::Planning, Phase::Resume],
        request_state_fit: vec![State::PlanningOnly, State::BlockedResume, State::ExecutionOpened],
        allowed_next_roles: vec![Role::Designer, Role::Architect, Role::Developer, Role::Qa],
        routing_priority: 0,
        should_not_handle: terms("direct code implementation | commit execution"),
    }
}

fn designer() -> Capability {
    Capability {
        summary: "Looks after what people see and read".to_owned(),
        owned_intents: terms("design"),
        routing_signals: terms(
            "ux | ui | design | copy | message | button | label | flow | interaction | 문구 \
             | 레이블 | 가독성 | 화면",
        ),
        strongest_for: terms("UX flow | copy and message design"),
        strongest_domain_signals: terms(
            "user-facing | response wording | discord reply | tone | copy | layout \
             | message format | ux flow | 문구 | 가독성",
        ),
        preferred_skills: Vec::new(),
        preferred_skill_signals: terms("ux | copy | interaction | presentation"),
        behavior_traits: terms("user-centered | clarifying | presentation-aware"),
        behavior_trait_signals: terms("clarify | readable | scan | friendly | 명확"),
        phase_fit: vec![Phase::Design, Phase::Planning],
        request_state_fit: vec![State::ExecutionOpened, State::ImplementationReady],
        allowed_next_roles: vec![Role::Planner, Role::Architect, Role::Developer, Role::Qa],
        routing_priority: 10,
        should_not_handle: terms("system architecture | commit execution"),
    }
}

fn architect() -> Capability {
    Capability {
        summary: "Guides the structure of a change and reviews it".to_owned(),
        owned_intents: terms("architect"),
        routing_signals: terms(
            "architecture | architect | api | schema | interface | contract | pipeline | boundary | module \
             | system | technical spec | technical specification | module structure \
             | codebase overview | code review | technical review | developer change review \
             | 구조 | 아키텍처 | 인터페이스 | 계약 | 경계 | 기술 명세",
        ),
        strongest_for: terms(
            "system architecture | technical specifications | module structure overview",
        ),
        strongest_domain_signals: terms(
            "structure | design contract | file impact | boundary | module split | schema | api \
             | sequence | interface | module structure | technical specification \
             | developer change review",
        ),
        preferred_skills: Vec::new(),
        preferred_skill_signals: terms(
            "architecture | contract | boundary | interface | technical spec | change review",
        ),
        behavior_traits: terms("systems-thinking | constraint-aware | sequencing-focused"),
        behavior_trait_signals: terms("system | constraint | sequence | boundary | guide | review"),
        phase_fit: vec![Phase::Architecture, Phase::Design, Phase::Implementation],
        request_state_fit: vec![State::ExecutionOpened, State::ImplementationReady],
        allowed_next_roles: vec![Role::Planner, Role::Developer, Role::Qa],
        routing_priority: 20,
        should_not_handle: terms("backlog ownership | commit execution"),
    }
}

fn developer() -> Capability {
    Capability {
        summary: "Changes the code and leaves it ready to check".to_owned(),
        owned_intents: terms("implement | execute"),
        routing_signals: terms(
            "implement | execute | code | coding | fix | bug | refactor | 구현 | 코드 | 버그 \
             | 수정 | 리팩터",
        ),
        strongest_for: terms("code implementation | bug fixes"),
        strongest_domain_signals: terms(
            "patch | code change | fix | refactor | feature | test ready | workspace change \
             | 구현 | 코드",
        ),
        preferred_skills: Vec::new(),
        preferred_skill_signals: terms("implement | code | patch | fix | refactor"),
        behavior_traits: terms("execution-oriented | concrete | artifact-producing"),
        behavior_trait_signals: terms("artifact | implement | patch | 실행"),
        phase_fit: vec![Phase::Implementation, Phase::Architecture],
        request_state_fit: vec![State::ExecutionOpened, State::ImplementationReady],
        allowed_next_roles: vec![Role::Planner, Role::Architect, Role::Qa],
        routing_priority: 30,
        should_not_handle: terms("backlog persistence | final commit ownership"),
    }
}

fn qa() -> Capability {
    Capability {
        summary: "Proves a change against its acceptance criteria".to_owned(),
        owned_intents: terms("qa"),
        routing_signals: terms(
            "qa | regression | verification | validate | validation | release readiness | test \
             | testing | 회귀 | 검증 | 품질 | 릴리즈 | 테스트",
        ),
        strongest_for: terms("verification | regression review | release readiness"),
        strongest_domain_signals: terms(
            "release | ready to close | test coverage | readiness | verify | qa | regression",
        ),
        preferred_skills: Vec::new(),
        preferred_skill_signals: terms("verify | validation | regression | release readiness"),
        behavior_traits: terms("skeptical | evidence-driven | release-focused"),
        behavior_trait_signals: terms("evidence | regression | verify | 검증"),
        phase_fit: vec![Phase::Validation, Phase::Closeout, Phase::Implementation],
        request_state_fit: vec![State::QaPending, State::CloseoutReady, State::ExecutionOpened],
        allowed_next_roles: vec![Role::Planner],
        routing_priority: 0,
        should_not_handle: terms("feature planning | commit execution"),
    }
}
