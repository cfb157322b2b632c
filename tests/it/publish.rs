//! Publishing a sprint with a scripted `gh` in `PATH`: rows G12 and G13 of `spec/teams.md` 14.8.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use teams::platform::spawn::set_own_binary;
use teams::service::publish::{Gh, PART_CHARS, Publication, Stage, publish};

use crate::git_repo::set_mode;

/// Issues and comments are files beside it; what is in `fail` fails.
pub(crate) const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
mkdir -p "$here/issues" "$here/comments"
echo "$*" >> "$here/calls"
refuse() {
  if [ -e "$here/fail" ] && [ "$(cat "$here/fail")" = "$1" ]; then
    echo "you shall not pass" >&2
    exit 4
  fi
}
entry() {
  who=me
  [ ! -e "$1/$2.by" ] || who=$(cat "$1/$2.by")
  printf '{"number":%s,"id":%s,"html_url":"https://example.test/issues/%s","user":{"login":"%s"},' "$2" "$2" "$2" "$who"
  tail -c +2 "$1/$2"
}
list() {
  printf '['
  comma=
  for one in $(ls "$1" | grep -v by | sort -n | sed -n "$((($2 - 1) * 100 + 1)),$(($2 * 100))p"); do
    printf '%s' "$comma"
    entry "$1" "$one"
    comma=,
  done
  printf ']'
}
page=${2##*page=}
case "$*" in
  --version) refuse version; echo "gh version 2" ;;
  "api user") refuse auth; echo '{"login":"me"}' ;;
  "repo view"*) refuse repo; echo '{"nameWithOwner":"a/b"}' ;;
  "api repos/a/b/issues?"*) refuse issue; list "$here/issues" "$page" ;;
  "api repos/a/b/issues/"*"/comments?"*) refuse comments; list "$here/comments" "$page" ;;
  "api --method DELETE"*) rm "$here/comments/${4##*/}" ;;
  "api --method "*)
    kind=issues
    case "$4" in *comments*) kind=comments ;; esac
    case "$3" in
      POST) id=$(($(ls "$here/$kind" | grep -v by | sort -n | tail -1) + 1)) ;;
      PATCH) id=${4##*/} ;;
    esac
    cp "$6" "$here/$kind/$id"
    entry "$here/$kind" "$id"
    ;;
  *) echo "unknown: $*" >&2; exit 2 ;;
esac
"#;

struct Place {
    folder: tempfile::TempDir,
    gh: Gh,
}

impl Place {
    fn new() -> Place {
        set_own_binary(env!("CARGO_BIN_EXE_teams").into());
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join("gh"), GH).unwrap();
        set_mode(&bin.join("gh"), 0o755);
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let env = BTreeMap::from([("PATH".to_owned(), path)]);
        let gh = Gh::find(folder.path().to_owned(), env, folder.path().join("scratch")).unwrap();
        Place { folder, gh }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("bin").join(path)
    }

    fn put(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn entry(&self, path: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.at(path)).unwrap()).unwrap()
    }

    fn names(&self, folder: &str) -> Vec<u32> {
        let entries = std::fs::read_dir(self.at(folder)).unwrap();
        let mut names: Vec<u32> = entries
            .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// The calls that change something, since the last look.
    fn changes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.at("calls")).unwrap();
        std::fs::remove_file(self.at("calls")).unwrap();
        let methods = text.lines().filter(|line| line.contains("--method"));
        methods.map(|line| line.split(" --input").next().unwrap().to_owned()).collect()
    }
}

fn sprint(body: &str, spec: &str) -> Publication {
    Publication {
        sprint_id: "260324-Sprint-09:00".to_owned(),
        title: "[260324-Sprint-09:00] Greet everybody".to_owned(),
        body: body.to_owned(),
        documents: vec![
            ("report.md".to_owned(), "all is well\n".to_owned()),
            ("spec.md".to_owned(), spec.to_owned()),
        ],
        since: None,
    }
}

#[tokio::test]
async fn g12_an_issue_is_created_once_and_updated_after() {
    let place = Place::new();
    // Somebody else's issues, more than a page of them; the last one has our mark, and is not ours.
    for number in 1..=130 {
        let other = json!({"title": "other", "body": "<!-- teams:sprint:260323-Sprint-09:00 -->"});
        place.put(&format!("issues/{number}"), &other.to_string());
    }
    let copied = json!({"title": "copied", "body": "<!-- teams:sprint:260324-Sprint-09:00 -->\n"});
    place.put("issues/130", &copied.to_string());
    place.put("issues/130.by", "stranger");
    let url = publish(&place.gh, &sprint("first", "spec")).await.unwrap();
    assert_eq!(url, "https://example.test/issues/131");
    let created = place.entry("issues/131");
    assert_eq!(created["title"], "[260324-Sprint-09:00] Greet everybody");
    assert_eq!(created["body"], "<!-- teams:sprint:260324-Sprint-09:00 -->\nfirst");
    assert_eq!(
        place.changes(),
        [
            "api --method POST repos/a/b/issues",
            "api --method POST repos/a/b/issues/131/comments",
            "api --method POST repos/a/b/issues/131/comments",
        ]
    );
    // The same again changes nothing; another text is changed in place.
    assert_eq!(publish(&place.gh, &sprint("first", "spec")).await.unwrap(), url);
    assert!(place.changes().is_empty());
    assert_eq!(publish(&place.gh, &sprint("second", "spec 2")).await.unwrap(), url);
    assert_eq!(
        place.changes(),
        [
            "api --method PATCH repos/a/b/issues/131",
            "api --method PATCH repos/a/b/issues/comments/2",
        ]
    );
    assert_eq!(place.names("comments"), [1, 2]);
    assert_eq!(place.entry("issues/130")["title"], "copied");
    // Nothing of the calls stays behind.
    let scratch = std::fs::read_dir(place.folder.path().join("scratch")).unwrap();
    assert_eq!(scratch.count(), 0);
}

#[tokio::test]
async fn g12_a_failure_names_its_stage() {
    let place = Place::new();
    for stage in [Stage::Version, Stage::Auth, Stage::Repo, Stage::Issue, Stage::Comments] {
        place.put("fail", stage.as_str());
        let error = publish(&place.gh, &sprint("x", "y")).await.unwrap_err();
        assert_eq!(error.stage, stage);
        let text = error.to_string();
        assert!(text.starts_with(&format!("{}: ", stage.as_str())), "{text}");
        assert!(text.contains("you shall not pass"), "{text}");
    }
    let nothing = BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]);
    let error = Gh::find("/".into(), nothing, "/".into()).unwrap_err();
    assert_eq!(error.stage, Stage::Version);
}

#[tokio::test]
async fn g13_a_long_document_takes_several_comments_and_keeps_them() {
    let place = Place::new();
    let line = "가나다라마바사아자\n";
    let long = line.repeat(PART_CHARS * 5 / 2 / 10);
    publish(&place.gh, &sprint("x", &long)).await.unwrap();
    assert_eq!(place.names("comments"), [1, 2, 3, 4]);
    for (name, part) in [(2, 1), (3, 2), (4, 3)] {
        let body = place.entry(&format!("comments/{name}"))["body"].as_str().unwrap().to_owned();
        let mark = format!("<!-- teams:sprint:260324-Sprint-09:00:spec.md:part-{part} -->");
        assert!(body.starts_with(&mark) && body.contains(&format!("spec.md ({part}/3)")));
        assert!(body.chars().count() < 65_536);
    }
    place.changes();
    let edited = long.replacen("가", "X", 1);
    publish(&place.gh, &sprint("x", &edited)).await.unwrap();
    assert_eq!(place.changes(), ["api --method PATCH repos/a/b/issues/comments/2"]);
    // A shorter version leaves no old parts behind.
    publish(&place.gh, &sprint("x", "short")).await.unwrap();
    assert_eq!(place.names("comments"), [1, 2]);
}
