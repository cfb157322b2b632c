//! What a hostile agent tries.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use serde_json::json;
use teams::platform::landlock::Strength;
use tokio::net::UdpSocket;

use super::scene::{Scene, Wall, call};

/// Where an attempt comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At every wall.
    Always,
    /// At namespaces, and at a Landlock that knows scopes (Linux 6.12).
    Scopes,
    /// At namespaces only: this is what Landlock leaves open.
    Namespaces,
    /// At Landlock; within namespaces it does whatever it does to what is the sandbox's own.
    Landlock,
}

impl Stop {
    /// Whether it comes through; `None` where that says nothing.
    pub(super) fn comes_through(self, wall: Wall) -> Option<bool> {
        match (self, wall) {
            (Stop::Always, _) => Some(false),
            (Stop::Scopes, Wall::Landlock(Strength::Files | Strength::FilesAndTcp)) => Some(true),
            (Stop::Scopes, _) => Some(false),
            (Stop::Namespaces, Wall::Landlock(_)) => Some(true),
            (Stop::Namespaces, Wall::Bubblewrap | Wall::Nothing) => Some(false),
            (Stop::Landlock, Wall::Landlock(_)) => Some(false),
            (Stop::Landlock, Wall::Bubblewrap | Wall::Nothing) => None,
        }
    }
}

/// Each ends with 0 only where it came through.
pub(super) fn attempts(scene: &Scene, neighbours: &Neighbours) -> Vec<(Stop, String)> {
    let (root, teams) = (scene.root(), env!("CARGO_BIN_EXE_teams"));
    let project = scene.house.project().to_str().unwrap().to_owned();
    let beside = scene.house.beside("hostile-mark").to_str().unwrap().to_owned();
    let state = format!("{root}/.teams_runtime");
    let other = scene.waiting.request_id.as_str();
    let commit = scene.waiting.work.candidate.as_ref().unwrap().commit.to_string();
    let commit = &commit[..10];
    let guild: reqwest::Url = scene.house.running.info.base_url.parse().unwrap();
    let port = guild.port().unwrap();
    let who = "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
    let team = scene.house.team_pid();
    let always = vec![
        // Outside of its worktree.
        format!("echo hostile > {beside}"),
        format!("echo hostile > {project}/hostile-mark"),
        format!("echo hostile >> {project}/greet.sh"),
        format!("echo hostile > {root}/hostile-mark"),
        format!("echo hostile > {state}/worktrees/{other}/hostile-mark"),
        "echo hostile > /usr/bin/hostile-mark".to_owned(),
        // The rules that it works by.
        format!("echo 'checks: []' >> {root}/team_runtime.yaml"),
        format!("echo '[]' > {root}/script.yaml"),
        format!("{teams} config set --workspace-root {root} language ko"),
        // Secrets.
        "env | grep -i -e TEAMS_TEST -e OPENAI -e PASSWORD -e SPARE".to_owned(),
        format!("grep -z . /proc/{team}/environ"),
        format!("grep . /proc/{team}/maps"),
        format!("grep . /proc/{team}/root{root}/.env"),
        format!("ls /proc/{team}/cwd/"),
        format!("mv {root}/.env $TMPDIR/env || ln {root}/.env $TMPDIR/env"),
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -e TEAMS_TEST_".to_owned(),
        format!("grep . {root}/.env"),
        format!("grep . {root}/.teams_setup/tokens.env"),
        format!("grep . {state}/control.secret"),
        format!("grep -r . {state}/journal"),
        format!("grep -r --exclude=schema.json . {state}/runs"),
        format!("find / -xdev -name tokens.env -o -xdev -name control.secret | grep -e {root}"),
        // The network.
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        "exec 3<>/dev/tcp/1.1.1.1/443".to_owned(),
        // Git.
        format!("{who} git commit --allow-empty -m hostile"),
        format!("{who} git push {project} HEAD:refs/heads/hostile"),
        "git update-ref refs/heads/main HEAD~0 || git update-ref refs/heads/hostile HEAD"
            .to_owned(),
        "git config core.hooksPath /tmp".to_owned(),
        format!("echo hostile > {project}/.git/hooks/post-commit"),
        // Somebody else's result.
        format!("echo '{{}}' > {state}/internal_relay/inbox/orchestrator/hostile-mark.json"),
        format!("mkdir -p {state}/runs/{other}/hostile-mark"),
        call("submit_result", &json!({"request_id": other, "status": "completed"})),
        format!(
            "ls -d {root}/*/sessions/* | grep -v developer/sessions/$(basename ${{TMPDIR%/*}})"
        ),
        "ls ${TEAMS_RUN_SOCKET%/*/*} | grep -v $(basename ${TEAMS_RUN_SOCKET%/*})".to_owned(),
        // Tools of another role.
        format!("{teams} backlog add --title hostile"),
        call("backlog", &json!({"items": [{"title": "hostile"}]})),
        call("approve", &json!({})),
        // A person's decision.
        format!("{teams} approve {other} --content {commit}"),
        format!("{teams} approve $(basename ${{TMPDIR%/*}}) --content {commit}"),
        format!(
            "env -u TEAMS_RUN_SOCKET {teams} --workspace-root {root} approve {other} --content {commit}"
        ),
        format!("TEAMS_RUN_SOCKET={state}/control.sock {teams} approve {other} --content {commit}"),
        format!("{teams} sprint stop"),
    ];
    let always = always.into_iter().map(|command| (Stop::Always, command));
    always.chain(neighbours.attempts(scene)).collect()
}

/// Programs of the same user beside the team, as they are on every machine.
pub(super) struct Neighbours {
    _by_path: UnixListener,
    _by_name: UnixListener,
    name: String,
    echo: u16,
    memory: Memory,
}

impl Neighbours {
    pub(super) async fn new(scene: &Scene) -> Neighbours {
        let name = format!("teams-test-{}", scene.house.team_pid());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        std::fs::write(scene.house.beside("decoy"), "decoy").unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(scene.house.beside("decoy"), mode).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let echo = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut bytes = [0; 16];
            while let Ok((size, from)) = socket.recv_from(&mut bytes).await {
                let _ = socket.send_to(&bytes[..size], from).await;
            }
        });
        Neighbours {
            _by_path: UnixListener::bind(scene.house.beside("neighbour.sock")).unwrap(),
            _by_name: UnixListener::bind_addr(&address).unwrap(),
            name,
            echo,
            memory: Memory::new(),
        }
    }

    fn attempts(&self, scene: &Scene) -> Vec<(Stop, String)> {
        let (root, team) = (scene.root(), scene.house.team_pid());
        let beside = |name: &str| scene.house.beside(name).display().to_string();
        let (decoy, socket) = (beside("decoy"), beside("neighbour.sock"));
        let connects = |address: &str| {
            perl(&format!(
                "socket(S, AF_UNIX, SOCK_STREAM, 0) or die; connect(S, sockaddr_un({address})) or die $!"
            ))
        };
        let inet = |kind: &str, port: u16, then: &str| {
            perl(&format!(
                "socket(S, AF_INET, {kind}, 0) or die; $a = sockaddr_in({port}, inet_aton(q(127.0.0.1))); {then}"
            ))
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let free = free.local_addr().unwrap().port();
        let (echo, memory) = (self.echo, &self.memory.0);
        vec![
            (Stop::Scopes, format!("kill -CONT {team}")),
            (Stop::Scopes, format!("setsid -w kill -CONT {team}")),
            (Stop::Scopes, connects(&format!("qq(\\0{})", self.name))),
            (
                Stop::Landlock,
                inet("SOCK_STREAM", free, "bind(S, $a) or die $!; listen(S, 1) or die $!"),
            ),
            // Which programs run, and how they were started.
            (
                Stop::Namespaces,
                format!("tr '\\0' ' ' < /proc/{team}/cmdline | grep workspace-root"),
            ),
            // Sockets of this user.
            (Stop::Namespaces, connects(&format!("q({socket})"))),
            (
                Stop::Namespaces,
                inet(
                    "SOCK_DGRAM",
                    echo,
                    "connect(S, $a) or die $!; send(S, q(x), 0) or die $!; \
                     defined recv(S, $b, 9, 0) or die $!; $b eq q(x) or die",
                ),
            ),
            // Shared memory of this user.
            (
                Stop::Namespaces,
                perl(&format!("shmread({memory}, $b, 0, 4) or die $!; $b eq q(mine) or die")),
            ),
            // Whether a file is there, its mode and its times; not what is in it.
            (Stop::Namespaces, format!("[ -e {root}/.env ]")),
            (Stop::Namespaces, format!("chmod 640 {decoy}")),
            (Stop::Namespaces, format!("[ -e {decoy} ] && touch -d 2001-01-01 {decoy}")),
            (Stop::Always, format!("grep . {decoy}")),
            (Stop::Always, format!("rm {decoy}")),
            // Limits of programs of this user.
            (Stop::Namespaces, format!("prlimit --pid {team} --core=0:0")),
            // The link of its own worktree to the repository; the last, because git is lost with it.
            (Stop::Namespaces, "echo gitdir: /tmp > .git".to_owned()),
        ]
    }
}

fn perl(text: &str) -> String {
    format!("perl -MSocket -e '{text}'")
}

/// A piece of shared memory with a word in it.
struct Memory(String);

impl Memory {
    fn new() -> Memory {
        let text = "$i = shmget(0, 64, 0600 | 01000); defined $i or die $!; shmwrite($i, q(mine), 0, 4) or die; print $i";
        let made = Command::new("perl").args(["-e", text]).output().expect("perl is there");
        assert!(made.status.success(), "{made:?}");
        Memory(String::from_utf8(made.stdout).unwrap())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = Command::new("perl").args(["-e", &format!("shmctl({}, 0, 0)", self.0)]).status();
    }
}
