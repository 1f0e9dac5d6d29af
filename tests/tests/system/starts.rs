//! What a start refuses, and what it says then; and which of file, environment and flags is stronger.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tollgate_domain::{FactKind, History, SystemRun};
use tollgate_tests::{
    journal_file,
    program::{self, Ended},
    sidecar::{Setup, Sidecar},
};

/// A start that is refused with a code, and a text that holds every one of these.
fn refused(setup: &Setup, code: i32, texts: &[&str]) {
    says(&setup.run(), code, texts);
}

fn says(ended: &Ended, code: i32, texts: &[&str]) {
    assert_eq!(ended.code(), code, "{}", ended.err);
    for text in texts {
        assert!(ended.err.contains(text), "{text:?} is in:\n{}", ended.err);
    }
    assert!(!ended.err.contains('\u{1b}'), "no colours into a pipe: {}", ended.err);
    assert!(ended.err.starts_with("error: ") || ended.err.contains("\nerror: "), "{}", ended.err);
}

#[tokio::test]
async fn a_second_writer_of_a_journal_is_refused_and_told_why() {
    let sidecar = Setup::new().start().await;
    let state = format!("'{}'", sidecar.setup().state().display());
    let journal = format!("'sqlite:{}'", sidecar.setup().journal_path().display());
    let key = format!("'{}/identity.key'", state.trim_matches('\''));
    let second = Setup::new().set("journal.url", &journal).set("journal.identity_key_file", &key);
    refused(&second, 1, &["in use by another sidecar", "journal.db", "stop the other sidecar"]);
    assert!(sidecar.generation().await.number == 1, "the first serves on");
}

#[tokio::test]
async fn another_identity_key_is_refused_and_a_damaged_one_too() {
    let (_, setup) = Setup::new().start().await.stop().await;
    let key = setup.state().join("identity.key");
    let own = fs::read_to_string(&key).unwrap();
    fs::write(&key, "ab".repeat(32)).unwrap();
    refused(&setup, 1, &["was begun with the identity key", "restore the key file"]);
    fs::write(&key, "no key").unwrap();
    refused(&setup, 1, &["identity key", "64 hexadecimal digits"]);
    fs::write(&key, own).unwrap();
    drop(setup.start().await);
}

#[tokio::test]
async fn a_journal_without_its_identity_key_is_refused_and_no_other_key_is_made() {
    let (_, setup) = Setup::new().start().await.stop().await;
    let key = setup.state().join("identity.key");
    let own = fs::read_to_string(&key).unwrap();
    fs::remove_file(&key).unwrap();
    refused(&setup, 1, &["identity.key is missing", "restore the key"]);
    assert!(!key.exists(), "another key would be another journal's");
    fs::write(&key, own).unwrap();
    drop(setup.start().await);
}

#[tokio::test]
async fn what_is_no_journal_is_left_alone() {
    let setup = Setup::new();
    fs::create_dir_all(setup.state()).unwrap();
    fs::write(setup.journal_path(), "notes of my own").unwrap();
    // A sidecar that has its key already, pointed at the wrong file.
    let key = setup.state().join("identity.key");
    fs::write(&key, "ab".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    refused(&setup, 1, &["is not a Tollgate journal"]);
    assert_eq!(fs::read_to_string(setup.journal_path()).unwrap(), "notes of my own");
}

#[tokio::test]
async fn wrong_keys_and_values_of_the_file_are_named_with_their_place() {
    for (key, value, texts) in [
        ("limits.in_flght", "3", vec!["in_flght", "in_flight", "tollgate.yaml", "line"]),
        ("nonsense.key", "1", vec!["nonsense", "tollgate.yaml"]),
        ("limits.in_flight", "many", vec!["tollgate.yaml", "line"]),
        ("limits.in_flight", "0", vec!["limits.in_flight", "1 to"]),
        ("limits.in_flight", "2305843009213693952", vec!["limits.in_flight", "1 to"]),
        ("limits.in_flight_kib", "0", vec!["limits.in_flight_kib", "1 to"]),
        ("limits.per_second", "0", vec!["tollgate.yaml"]),
        ("policy.settle", "soon", vec!["\"soon\"", "500ms"]),
        ("policy.settle", "'-5s'", vec!["-5s", "positive"]),
        ("policy.when_no_hook_matches", "maybe", vec!["maybe", "deny", "allow"]),
        ("decision.validity", "0s", vec!["0s", "positive"]),
        ("journal.max_wait", "2562047788015215h", vec!["2562047788015215h", "24h"]),
        ("decision.default_timeout", "2h", vec!["decision.default_timeout", "decision.max_timeout"]),
        ("journal.url", "'postgres://x'", vec!["sqlite:PATH"]),
        ("journal.url", "'sqlite::memory:'", vec!["sqlite:PATH"]),
        ("journal.url", "'sqlite:x?mode=memory'", vec!["sqlite:PATH"]),
        ("journal.max_queue", "0", vec!["journal.max_queue"]),
        ("log.level", "'=='", vec!["log.level"]),
        ("log.format", "xml", vec!["xml", "text", "json"]),
        ("listeners.data", "[]", vec!["listeners.data is empty"]),
        ("listeners.data", "[{ listen: 'localhost' }]", vec!["localhost", "ADDRESS:PORT"]),
        ("listeners.data", "[{ listen: '127.0.0.1:0', mode: '0600' }]", vec!["127.0.0.1:0", "Unix sockets"]),
        ("listeners.data", "[{ listen: 'unix:{dir}/x', mode: '0999' }]", vec!["0999", "octal"]),
        ("listeners.data", "[{ listen: 'unix:{dir}/x', group: 'no-such-group' }]", vec!["no-such-group"]),
        ("listeners.data", "[{ listen: 'unix:{dir}/x', group: '4294967295' }]", vec!["4294967295"]),
        ("listeners.read", "[{ listen: 'unix:{dir}/x', trust_claims: true }]", vec!["trust_claims", "data door"]),
        ("listeners.data", "[{ listen: 'unix:{dir}/x', tenants: [''] }]", vec!["empty"]),
        ("policy.local_hooks", "'{dir}/nowhere'", vec!["nowhere"]),
    ] {
        refused(&Setup::new().set(key, value), 1, &texts);
    }
    let missing = program::run(program::command(["serve", "--config", "/nowhere/tollgate.yaml"]));
    says(&missing, 1, &["cannot read the configuration /nowhere/tollgate.yaml"]);
}

#[tokio::test]
async fn unknown_variables_and_wrong_flags_are_refused() {
    let setup = Setup::new();
    let mut command = setup.command();
    command.env("TOLLGATE_LIMITS_INFLIGHT", "3");
    says(&program::run(command), 1, &["TOLLGATE_LIMITS_INFLIGHT", "serve --help"]);
    for (flag, value) in
        [("--limits-in-flight", "many"), ("--policy-settle", "soon"), ("--no-such-flag", "1"), ("--log-format", "xml")]
    {
        says(&program::run(program::command(["serve", flag, value])), 2, &[flag]);
    }
    let mut command = setup.command();
    command.env("TOLLGATE_POLICY_SETTLE", "soon");
    says(&program::run(command), 2, &["--policy-settle", "500ms"]);
}

#[tokio::test]
async fn the_environment_is_stronger_than_the_file_and_a_flag_than_both() {
    let validity = async |sidecar: Sidecar| {
        let run = tollgate_tests::wire::run();
        let answer = sidecar.gate().await.evaluate(tollgate_tests::wire::call(&run, "desk.read", "{}")).await.unwrap();
        let until = answer.response().valid_until.unwrap().seconds;
        let at = sidecar.facts(&run).await[1].at.unwrap().seconds;
        until - at
    };
    let near = |seconds: i64, expected: i64| assert!((seconds - expected).abs() <= 1, "{seconds} is near {expected}");
    near(validity(Setup::new().start().await).await, 60);
    near(validity(Setup::new().set("decision.validity", "100s").start().await).await, 100);
    let with_variable = || Setup::new().set("decision.validity", "100s").variable("TOLLGATE_DECISION_VALIDITY", "200s");
    near(validity(with_variable().start().await).await, 200);
    near(validity(with_variable().flag("--decision-validity", "300s").start().await).await, 300);
}

#[tokio::test]
async fn a_place_that_is_taken_is_named() {
    let sidecar =
        Setup::new().set("listeners.data", "[{ listen: 'unix:{dir}/data.sock' }, { listen: '127.0.0.1:0' }]").start().await;
    let tcp = sidecar.announced().pop().unwrap();
    let tcp = tcp.trim_start_matches("http://");
    refused(&Setup::new().set("listeners.data", &format!("[{{ listen: '{tcp}' }}]")), 1, &["cannot listen on", tcp]);
    let socket = sidecar.data();
    refused(&Setup::new().set("listeners.data", &format!("[{{ listen: '{socket}' }}]")), 1, &["another process listens on"]);
    let file = Setup::new();
    fs::write(file.directory().join("data.sock"), "a file").unwrap();
    refused(&file, 1, &["is no socket"]);
    assert_eq!(fs::read_to_string(file.directory().join("data.sock")).unwrap(), "a file");
}

#[tokio::test]
async fn p13_every_start_is_on_record_with_what_is_lax() {
    let setup = Setup::new().set("policy.when_no_hook_matches", "allow");
    let sidecar = setup.start().await;
    let id = sidecar.status().await.sidecar_id;
    assert!(sidecar.log().contains("lax=\"policy.when_no_hook_matches=allow\""), "{}", sidecar.log());
    let sidecar = sidecar.kill().start().await;
    assert_eq!(sidecar.status().await.sidecar_id, id, "a journal keeps the name of its sidecar");
    let (_, setup) = sidecar.stop().await;
    let history = History::System(SystemRun::Sidecar(id.parse().unwrap()));
    let facts = journal_file::facts(&setup.journal_path(), &history).await;
    let kinds: Vec<_> = facts.iter().map(|stored| stored.fact.kind()).collect();
    let start = [FactKind::SidecarStarted, FactKind::ConfigurationLoosened];
    assert_eq!(kinds, [start, start].concat());
}
