//! The command line as people and scripts use it: exit codes, what is printed, and where.

use std::{fs, process::Stdio};

use serde_json::Value;
use tollgate_client::v1;
use tollgate_tests::{
    program::{self, Ended},
    sidecar::{Setup, Sidecar, eventually},
    trees, wire,
};

fn path(run: &v1::RunKey) -> String {
    let v1::RunKey { tenant, workspace, owner_id, run_id, .. } = run;
    format!("{tenant}/{workspace}/RUN/{owner_id}/{run_id}")
}

/// `tollgate evaluate` with arguments on its standard input.
fn evaluate(sidecar: &Sidecar, run: &v1::RunKey, tool: &str, arguments: &str, more: &[&str]) -> Ended {
    let (address, run) = (sidecar.data(), path(run));
    let mut command = program::command(["evaluate", "--address", &address, "--run", &run]);
    command.args(["--agent", "desk-agent@7", "--tool", tool]).args(more);
    let ended = program::run_with(command, arguments);
    plain(&ended);
    ended
}

/// Into a pipe, nothing is coloured.
fn plain(ended: &Ended) {
    assert!(!ended.out.contains('\u{1b}') && !ended.err.contains('\u{1b}'), "{ended:?}");
}

fn run(arguments: &[&str]) -> Ended {
    let ended = program::run(program::command(arguments));
    plain(&ended);
    ended
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[tokio::test]
async fn evaluate_tells_allow_deny_failed_and_no_decision_apart_by_its_exit_code() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let allowed = evaluate(&sidecar, &run, "desk.read", "{}", &[]);
    assert_eq!(allowed.code(), 0, "{allowed:?}");
    assert!(allowed.out.starts_with("ALLOW") && allowed.out.contains("valid until"), "{}", allowed.out);
    let denied = evaluate(&sidecar, &run, "desk.write", "{}", &[]);
    assert_eq!(denied.code(), 3);
    for text in ["DENY", "writing_denied", "desk", trees::DENY_MESSAGE] {
        assert!(denied.out.contains(text), "{text} in {}", denied.out);
    }
    let failed = evaluate(&sidecar, &run, "pay.send", r#"{"count":9223372036854775807}"#, &[]);
    assert_eq!(failed.code(), 4);
    assert!(failed.out.contains("FAILED") && failed.out.contains("policy_error"), "{}", failed.out);
    let invalid = evaluate(&sidecar, &run, "desk.read", "[]", &[]);
    assert_eq!((invalid.code(), invalid.out.as_str()), (1, ""));
    assert!(invalid.err.contains("INVALID_FIELD") && invalid.err.contains("arguments_json"), "{}", invalid.err);
    let address = format!("unix:{}/nobody.sock", sidecar.setup().directory().display());
    let nobody = self::run(&["evaluate", "--address", &address, "--run", &path(&run), "--agent", "a@1", "--tool", "t"]);
    assert_eq!(nobody.code(), 1);
    assert!(nobody.err.contains("cannot reach a sidecar at unix:"), "{}", nobody.err);
    for wrong in
        [["--run", "acme/desk"], ["--agent", "nobody"], ["--principal", "ann"], ["--timeout", "soon"], ["--no-such", "x"]]
    {
        let ended = evaluate(&sidecar, &run, "desk.read", "{}", &wrong);
        assert_eq!(ended.code(), 2, "{wrong:?}: {ended:?}");
        assert!(ended.err.contains(wrong[0]), "{}", ended.err);
    }
}

#[tokio::test]
async fn evaluate_takes_everything_that_a_call_can_say_and_prints_one_json_object() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let file = sidecar.setup().directory().join("arguments.json");
    fs::write(&file, r#"{"count":9007199254740993}"#).unwrap();
    let file = file.display().to_string();
    let mut more =
        vec!["--json", "--arguments", &file, "--provider", "pay", "--external-name", "send", "--principal", "user:ann"];
    more.extend(["--tool-call", "call-1", "--invocation", "invocation-1", "--timeout", "5s"]);
    let denied = evaluate(&sidecar, &run, "pay.send", "not read", &more);
    assert_eq!((denied.code(), denied.out.lines().count()), (3, 1), "{denied:?}");
    let answer = json(&denied.out);
    assert_eq!(answer["decision"], "DENY");
    assert_eq!(answer["code"], "exact_count", "the integer arrived exactly");
    assert_eq!((&answer["tool_call_id"], &answer["invocation_id"]), (&"call-1".into(), &"invocation-1".into()));
    assert_eq!((&answer["attempt"], &answer["repeat"], &answer["hook_id"]), (&1.into(), &false.into(), &"pay".into()));
    assert_eq!(answer["generation"]["number"], 1);
    let again = evaluate(&sidecar, &run, "pay.send", "not read", &more);
    assert_eq!((again.code(), json(&again.out)["repeat"].as_bool()), (3, Some(true)));

    let mut command =
        program::command(["evaluate", "--run", &path(&run), "--agent", "desk-agent@7", "--tool", "desk.read", "--json"]);
    command.env("TOLLGATE_ADDRESS", sidecar.data());
    let allowed = program::run_with(command, "{}");
    assert_eq!(allowed.code(), 0, "the address comes from the environment as well: {allowed:?}");
    assert!(json(&allowed.out)["valid_until"].is_string());
}

#[tokio::test]
async fn complete_records_each_outcome_and_the_first_one_stands() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    for (more, kind) in [
        (vec!["--outcome", "succeeded"], "SUCCEEDED"),
        (vec!["--outcome", "tool-error"], "SUCCEEDED"),
        (vec!["--outcome", "failed", "--error-type", "Timeout", "--error-message", "slow"], "FAILED"),
        (vec!["--outcome", "cancelled"], "CANCELLED"),
    ] {
        let allowed = json(&evaluate(&sidecar, &run, "desk.read", "{}", &["--json"]).out);
        let (address, run, invocation) = (sidecar.data(), path(&run), allowed["invocation_id"].as_str().unwrap().to_owned());
        let complete = |more: &[&str]| {
            let mut arguments = vec!["complete", "--address", &address, "--run", &run, "--invocation", &invocation];
            arguments.extend(more);
            self::run(&arguments)
        };
        let ended = complete(&[more.as_slice(), &["--json"]].concat());
        assert_eq!(ended.code(), 0, "{ended:?}");
        assert_eq!((&json(&ended.out)["governed"]["kind"], &json(&ended.out)["repeat"]), (&kind.into(), &false.into()));
        let again = complete(&["--outcome", "succeeded"]);
        assert!(again.out.starts_with(kind) && again.out.contains("the first outcome stands"), "{}", again.out);
        assert_eq!(complete(&["--outcome", "failed"]).code(), 2, "a failure names the exception's type");
    }
    let unknown = self::run(&[
        "complete",
        "--address",
        &sidecar.data(),
        "--run",
        &path(&run),
        "--invocation",
        "unknown",
        "--outcome",
        "succeeded",
    ]);
    assert_eq!(unknown.code(), 1);
    assert!(unknown.err.contains("NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test]
async fn journal_show_tells_a_run_as_a_timeline_and_as_json() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    // More than one page.
    let gate = sidecar.gate().await;
    for number in 0..60 {
        let tool = if number % 2 == 0 { "desk.read" } else { "desk.write" };
        drop(gate.evaluate(wire::call(&run, tool, "{}")).await.unwrap());
    }
    let (address, name) = (sidecar.read(), path(&run));
    let show = |more: &[&str]| {
        let mut arguments = vec!["journal", "show", "--address", &address, &name];
        arguments.extend(more);
        self::run(&arguments)
    };
    let timeline = show(&[]);
    assert_eq!(timeline.code(), 0, "{timeline:?}");
    for text in [
        &name,
        "#1 ",
        "#150 ",
        "started desk.read by desk-agent",
        "ALLOW generation 1",
        "DENY generation 1 writing_denied",
        "by no-writing",
    ] {
        assert!(timeline.out.contains(text), "{text} in {}", timeline.out);
    }
    let facts: Vec<Value> = show(&["--json"]).out.lines().map(json).collect();
    let sequences: Vec<_> = facts.iter().map(|fact| fact["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=150).collect::<Vec<_>>());
    assert_eq!((&facts[0]["fact"], &facts[1]["fact"]), (&"ToolCallStarted".into(), &"GovernanceEvaluated".into()));
    assert_eq!(facts[1]["body"]["hooks"][0]["verdict"], "ALLOWED");
    assert_eq!(show(&["--json", "--decision", "deny"]).out.lines().count(), 30);
    assert_eq!(show(&["--json", "--tool", "desk.write"]).out.lines().count(), 90);
    let unknown = self::run(&["journal", "show", "--address", &address, "acme/desk/RUN/desk-agent/none"]);
    assert_eq!((unknown.code(), unknown.out.as_str()), (1, ""));
    assert!(unknown.err.contains("NOT_FOUND"), "{}", unknown.err);
}

#[tokio::test]
async fn journal_show_prints_nothing_of_a_caller_that_could_turn_or_redraw_a_line() {
    let sidecar = Setup::new().start().await;
    let run = v1::RunKey { owner_id: "a/b%c".to_owned(), ..wire::run() };
    let mut call = wire::call(&run, "desk.read", "{}");
    call.agent.as_mut().unwrap().id = "desk-\u{202e}tnega".to_owned();
    drop(sidecar.gate().await.evaluate(call).await.unwrap());
    let name = format!("acme/desk/RUN/a%2Fb%25c/{}", run.run_id);
    let shown = self::run(&["journal", "show", "--address", &sidecar.read(), &name]);
    assert_eq!(shown.code(), 0, "{shown:?}");
    assert!(shown.out.contains(&name) && shown.out.contains("by desk-\u{fffd}tnega"), "{}", shown.out);
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_a_command_without_a_panic() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let gate = sidecar.gate().await;
    for _ in 0..200 {
        drop(gate.evaluate(wire::call(&run, "desk.write", "{}")).await.unwrap());
    }
    for arguments in [
        vec!["journal".to_owned(), "show".to_owned(), "--address".to_owned(), sidecar.read(), path(&run), "--json".to_owned()],
        vec!["completions".to_owned(), "bash".to_owned()],
    ] {
        let mut command = program::command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(!said.contains("panic"), "{said}");
        assert_ne!(ended.status.code(), Some(101));
    }
}

#[tokio::test]
async fn policy_check_prints_findings_for_people_and_as_json_and_fails_with_five() {
    let directory = tempfile::tempdir().unwrap();
    trees::write(&trees::gate(), &directory.path().join("good"));
    let bad = [
        ("hooks/desk/hook.yaml", "id: desk\nkind: cedar\nodrer: 0\norder: 0\n"),
        ("hooks/desk/desk.cedar", "permit (principal, action, resource);\n"),
    ];
    trees::write(&trees::with(trees::gate(), &bad), &directory.path().join("bad"));
    let path = |name: &str| directory.path().join(name).display().to_string();

    let good = run(&["policy", "check", &path("good")]);
    assert_eq!(good.code(), 0, "{good:?}");
    assert!(good.out.contains("ok: ") && good.out.contains("2 hooks, 5 policies, 3 tools"), "{}", good.out);
    let bad = run(&["policy", "check", &path("bad")]);
    assert_eq!(bad.code(), 5);
    for text in ["TG0202", "odrer", "hooks/desk/hook.yaml:3", "order", "TG0504", "hooks/desk/desk.cedar:1", "refused: "] {
        assert!(bad.out.contains(text), "{text} in {}", bad.out);
    }
    let bad = run(&["policy", "check", "--format", "json", &path("bad")]);
    let report = json(&bad.out);
    assert_eq!((bad.code(), report["bundle"].as_str()), (5, Some("system")));
    let codes: Vec<_> = report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"TG0202") && codes.contains(&"TG0504"), "{codes:?}");
    let good = run(&["policy", "check", "--format", "json", &path("good")]);
    assert_eq!((good.code(), json(&good.out)["findings"].as_array().unwrap().len()), (0, 0));
    assert_eq!(run(&["policy", "check", &path("none")]).code(), 5);
}

#[tokio::test]
async fn policy_check_advises_against_policies_that_every_call_pays_for_and_refuses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let policy = |number| format!("@id(\"p{number}\")\npermit (principal, action, resource is Tollgate::Tool);\n");
    let policies = (0..60).map(policy).collect::<Vec<_>>().concat();
    trees::write(&trees::with(trees::gate(), &[("hooks/desk/desk.cedar", &policies)]), directory.path());
    let path = directory.path().display().to_string();

    let human = run(&["policy", "check", &path]);
    assert_eq!(human.code(), 0, "{human:?}");
    for text in ["advice[TG0512]", "60 of the hook's 60 policies", "hooks/desk/desk.cedar:1:1", "ok: "] {
        assert!(human.out.contains(text), "{text} in {}", human.out);
    }
    let machine = run(&["policy", "check", "--format", "json", &path]);
    let report = json(&machine.out);
    assert_eq!((machine.code(), report["findings"].as_array().unwrap().len()), (0, 0));
    assert_eq!((&report["advice"][0]["code"], &report["advice"][0]["severity"]), (&"TG0512".into(), &"advice".into()));
}

#[tokio::test]
async fn policy_status_tells_what_decides_and_what_was_refused() {
    let sidecar = Setup::new().start().await;
    let status = run(&["policy", "status", "--address", &sidecar.read()]);
    assert_eq!(status.code(), 0);
    assert!(status.out.starts_with("active generation 1 of system"), "{}", status.out);
    trees::write(&trees::with(trees::gate(), &[("tools.yaml", "[")]), &sidecar.setup().bundle());
    eventually("a refusal", async || sidecar.status().await.last_error).await;
    let status = run(&["policy", "status", "--address", &sidecar.read()]);
    for text in ["active generation 1 of system", "last refusal bundle_invalid", "tools.yaml"] {
        assert!(status.out.contains(text), "{text} in {}", status.out);
    }
}

#[tokio::test]
async fn help_has_examples_and_exit_codes_and_completions_know_every_command() {
    let help = run(&["--help"]);
    assert_eq!((help.code(), help.err.as_str()), (0, ""));
    assert!(help.out.contains("Exit codes:") && help.out.contains("3  evaluate: DENY"), "{}", help.out);
    for command in ["serve", "evaluate", "demo"] {
        let help = run(&[command, "--help"]);
        assert!(help.code() == 0 && help.out.contains("Examples:"), "{}", help.out);
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let completions = run(&["completions", shell]);
        assert_eq!(completions.code(), 0);
        for command in ["serve", "evaluate", "complete", "policy", "journal", "demo"] {
            assert!(completions.out.contains(command), "{shell}: {command}");
        }
    }
    let nothing = run(&[]);
    assert_eq!((nothing.code(), nothing.out.as_str()), (2, ""));
    assert!(nothing.err.contains("Usage: tollgate"), "{}", nothing.err);
    assert!(run(&["--version"]).out.starts_with("tollgate "));
}

#[tokio::test]
async fn the_demo_plays_its_run_from_beginning_to_end_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = program::command(["demo"]);
    command.env("TMPDIR", temporary.path()).current_dir(temporary.path());
    let demo = program::run(command);
    plain(&demo);
    assert_eq!(demo.code(), 0, "{demo:?}");
    for text in [
        "A sidecar serves on http://127.0.0.1:",
        "ALLOW by generation 1",
        "DENY by generation 1",
        "FAILED by generation 1",
        "argument_unrepresentable",
        "swapped to generation 2",
        "DENY by generation 2, attempt 2",
        "What the journal holds of it",
        "attempt 2",
        "ConnectionResetError",
    ] {
        assert!(demo.out.contains(text), "{text} in {}\n{}", demo.out, demo.err);
    }
    let (story, journal) = demo.out.split_once("What the journal holds of it").unwrap();
    assert!(!journal.contains("DE02120300000000202051"), "no argument in {journal}");
    assert!(story.contains("payment_over_limit") || story.contains("person_required"), "{story}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "nothing is left");
}

#[tokio::test]
async fn the_demo_keeps_serving_where_it_is_told_to_in_the_directory_that_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("demo");
    let log = fs::File::create(directory.path().join("log")).unwrap();
    let mut command = program::command(["demo", "--keep", "--directory"]);
    let mut demo = command.arg(&place).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let text = eventually("the end of the story", async || {
        let text = fs::read_to_string(directory.path().join("log")).unwrap();
        text.contains("edit a policy in").then_some(text)
    })
    .await;
    let word = |before: &str| text.split_once(before).unwrap().1.split_whitespace().next().unwrap().to_owned();
    let (data, run_name) = (word("tollgate evaluate --address "), word(" --run "));
    let mut command = program::command(["evaluate", "--address", &data, "--run", &run_name, "--agent", "support-agent@1"]);
    command.args(["--tool", "search.knowledge_base"]);
    assert_eq!(program::run_with(command, "{\"query\":\"refunds\"}").code(), 0, "the printed command works");
    let read = word("tollgate journal show --address ");
    assert_eq!(run(&["journal", "show", "--address", &read, &run_name, "--json"]).code(), 0);
    assert_eq!(run(&["policy", "status", "--address", &read]).code(), 0);
    let pid = rustix::process::Pid::from_raw(i32::try_from(demo.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = eventually("its end", async || demo.try_wait().unwrap()).await;
    assert!(status.success());
    assert!(place.join("state/journal.db").exists() && place.join("policies/bundle.yaml").exists());
    // Again, in the same place.
    let again = run(&["demo", "--directory", &place.display().to_string()]);
    assert_eq!(again.code(), 0, "{again:?}");
}
