//! A bad way between the hub and its worker: what is lost is said again, and nothing is done twice.

use serde_json::json;
use teams::domain::request::RequestStatus;

use crate::support::house::{EDIT, EDITED, House, Plan};

/// The variable with the seed of what the way does to messages and blobs.
const BAD: &str = "TEAMS_BAD_TRANSPORT";

#[tokio::test]
async fn over_a_bad_way_to_the_worker_every_run_has_one_result() {
    // Long enough for a blob, of which one of two is altered on its way.
    let text = "so it goes, ".repeat(100);
    let script = json!([{"role": "architect", "do": "say", "text": text, "times_over": 80}]);
    let mut house = House::built(Plan::script(&script.to_string())).await;
    house.start_with(&[(BAD, "7")]);
    let asked = house.ask(EDIT).await;
    let request = house.becomes(&asked, RequestStatus::Committed).await;
    house.quiet().await;
    assert_eq!(house.on_branch("greet.sh"), EDITED);
    assert_eq!(house.commits().len(), 1);
    assert_eq!(house.times(&request, "role_report"), house.times(&request, "delegated"));
    let log = house.whole_log();
    assert!(log.contains("was altered on its way"), "the way was a good one");
    house.close().await;
}
