//! The one integration-test binary. Each file is a subject.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod acp;
mod acp_agents;
mod agent_rubbish;
mod agents;
mod bad_input;
mod check_isolation;
mod check_proposals;
mod circles;
mod claude;
mod codex;
mod command_line;
mod conformance;
mod demo_agents;
mod discord_delivery;
mod discord_intake;
mod discord_limits;
mod discord_link;
mod discover;
mod doctor;
mod earlier_build;
mod git;
mod git_checks;
mod git_merge;
mod git_repo;
mod git_sprint;
mod hand_over;
mod hostile;
mod journal_damage;
mod local_guild;
mod local_guild_disk;
mod local_guild_faults;
mod local_guild_gateway;
mod local_guild_openapi;
mod local_guild_people;
mod local_guild_rights;
mod model_proxy;
mod older_workspace;
mod other_clients;
mod page;
mod page_apps;
mod page_walk;
mod project_settings;
mod publish;
mod rehearsal_sprint;
mod sandbox;
mod scenarios;
mod serenity_client;
mod setup;
mod steer;
mod store_kill;
mod strays;
mod supervise;
mod support;
mod team_acp;
mod team_agents;
mod team_base;
mod team_bodies;
mod team_burst;
mod team_checks;
mod team_claude;
mod team_codex;
mod team_commands;
mod team_commit;
mod team_control;
mod team_crew;
mod team_faults;
mod team_gateway;
mod team_intake;
mod team_intake_lanes;
mod team_kill;
mod team_landing;
mod team_lifecycle;
mod team_outage;
mod team_page;
mod team_prompts;
mod team_publish;
mod team_retention;
mod team_review;
mod team_serving;
mod team_sprint;
mod team_sprint_kill;
mod team_steer;
mod team_strangers;
mod team_surface;
mod team_tools;
mod team_transport;
mod tidy;
