//! A process that owns a workspace is killed at each of its appends; the next one finds what it was told
//! is saved.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use teams::domain::change::Change;
use teams::domain::ids::RequestId;
use teams::domain::request::Request;
use teams::platform::disk::RealDisk;
use teams::platform::plug::{COUNT_VARIABLE, PLUG_VARIABLE, Point, write_counts};
use teams::store::{Store, read_only};

const WORKSPACE: &str = "STORE_KILL_WORKSPACE";
const APPENDS: usize = 12;

/// One life: appends requests one after the other and writes down which were acknowledged. As a test of
/// its own, without a workspace, it has nothing to do.
#[test]
fn life() {
    let Some(root) = std::env::var_os(WORKSPACE) else {
        return;
    };
    let root = Path::new(&root);
    let opened = Store::open(root, Arc::new(RealDisk)).unwrap();
    for number in opened.state.requests.len()..APPENDS {
        let request = Request {
            request_id: RequestId::parse(&format!("20260324-{number:08x}")).unwrap(),
            ..Request::default()
        };
        let change = Change::save(request);
        opened.store.append(vec![change]).wait().unwrap();
        std::fs::write(root.join("acknowledged"), (number + 1).to_string()).unwrap();
    }
    opened.store.close().unwrap();
    write_counts().unwrap();
}

fn live(root: &Path, variable: &str, value: &str) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store_kill::life"])
        .env(WORKSPACE, root)
        .env(variable, value)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

#[test]
fn a_killed_store_keeps_what_it_acknowledged() {
    let whole = tempfile::tempdir().unwrap();
    let counts = whole.path().join("counts");
    assert!(live(whole.path(), COUNT_VARIABLE, counts.to_str().unwrap()).success());
    let counts = std::fs::read_to_string(counts).unwrap();
    assert!(counts.contains(&format!("before_append {APPENDS}")), "{counts}");

    for point in [Point::BeforeAppend, Point::AfterSync] {
        for number in 1..=APPENDS {
            let root = tempfile::tempdir().unwrap();
            let order = format!("{}:{number}", point.as_str());
            let status = live(root.path(), PLUG_VARIABLE, &order);
            assert_eq!(status.signal(), Some(9), "{order}");
            let acknowledged: usize = std::fs::read_to_string(root.path().join("acknowledged"))
                .map_or(0, |text| text.parse().unwrap());
            let found = read_only(root.path()).unwrap().requests.len();
            let expected = match point {
                Point::BeforeAppend => acknowledged,
                Point::AfterSync | Point::AfterEffect | Point::AfterRebase => acknowledged + 1,
            };
            assert_eq!(found, expected, "{order}");
            assert!(live(root.path(), COUNT_VARIABLE, "/dev/null").success(), "{order}");
            assert_eq!(read_only(root.path()).unwrap().requests.len(), APPENDS);
        }
    }
}
