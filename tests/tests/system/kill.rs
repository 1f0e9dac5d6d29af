//! The sidecar is killed while clients ask and complete; what they were told is then on record.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinSet};
use tollgate_client::{Gate, v1};
use tollgate_domain::{Fact, FactKind, History, StoredFact, codes};
use tollgate_journal::SqliteReader;
use tollgate_tests::{
    journal_file,
    sidecar::{Setup, eventually},
    trees, wire,
};

/// How often it is killed, and after how many acknowledged decisions each time: somewhere else in the life
/// of a batch, a checkpoint or a connection.
const KILLS: [usize; 5] = [40, 171, 97, 263, 60];
const CLIENTS: usize = 16;

/// What clients were told.
#[derive(Debug, Default)]
struct Told {
    decisions: Vec<(v1::RunKey, v1::EvaluateResponse)>,
    outcomes: Vec<(v1::RunKey, String, v1::CompleteResponse)>,
}

#[tokio::test]
async fn p05_g05_no_acknowledged_decision_is_lost_when_the_sidecar_is_killed_under_load() {
    let told = Arc::new(Mutex::new(Told::default()));
    let runs: Vec<_> = (0..CLIENTS).map(|_| wire::run()).collect();
    let mut setup = Setup::new();
    let mut generations = Vec::new();
    for (round, after) in KILLS.into_iter().enumerate() {
        let sidecar = setup.start().await;
        generations.push(sidecar.generation().await.number);
        let mut clients = JoinSet::new();
        for run in &runs {
            clients.spawn(ask_until_it_dies(sidecar.gate().await, run.clone(), Arc::clone(&told)));
        }
        let enough = told.lock().await.decisions.len() + after;
        eventually("decisions", async || (told.lock().await.decisions.len() >= enough).then_some(())).await;
        if round % 2 == 1 {
            // A new generation is on its way as well.
            let text = format!("# round {round}\nid: desk\nkind: cedar\norder: 0\n");
            trees::write(&trees::with(trees::gate(), &[("hooks/desk/hook.yaml", &text)]), &sidecar.setup().bundle());
        }
        setup = sidecar.kill();
        clients.join_all().await;
    }
    // The last start closes what the last kill left; then everything is read without any sidecar.
    let sidecar = setup.start().await;
    generations.push(sidecar.generation().await.number);
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    assert!(generations.is_sorted(), "numbers of generations rise: {generations:?}");

    let told = Arc::into_inner(told).unwrap().into_inner();
    assert!(told.decisions.len() >= KILLS.iter().sum());
    let reader = SqliteReader::open(setup.journal_path()).await.unwrap();
    let mut histories = HashMap::new();
    for run in &runs {
        let facts = journal_file::facts_from(&reader, &journal_file::history(run)).await;
        check_lives(&facts);
        histories.insert(run.run_id.clone(), facts);
    }
    for (run, answer) in &told.decisions {
        check_decision(&histories[&run.run_id], answer);
    }
    for (run, invocation, answer) in &told.outcomes {
        let mut facts = histories[&run.run_id].iter().filter(|stored| is_of(stored, invocation));
        let ended = facts.find(|stored| stored.fact.kind() == FactKind::ToolCallCompleted);
        assert_eq!(ended.expect("an acknowledged outcome is on record").sequence, answer.sequence);
    }
    reader.close().await;
}

/// Asks, completes what is allowed, and notes each answer, until there is none.
async fn ask_until_it_dies(gate: Gate, run: v1::RunKey, told: Arc<Mutex<Told>>) {
    for number in 0_u32.. {
        let tool = if number % 4 == 3 { "desk.write" } else { "desk.read" };
        let Ok(answer) = gate.evaluate_within(wire::call(&run, tool, r#"{"a":1}"#), Duration::from_secs(10)).await else {
            return;
        };
        let response = answer.response().clone();
        let (allowed, invocation) = (response.decision() == v1::Decision::Allow, response.invocation_id.clone());
        told.lock().await.decisions.push((run.clone(), response));
        if allowed && number % 3 != 0 {
            let Ok(outcome) = gate.complete(wire::succeeded(&run, &invocation)).await else { return };
            told.lock().await.outcomes.push((run.clone(), invocation, outcome));
        }
    }
}

fn is_of(stored: &StoredFact, invocation: &str) -> bool {
    stored.invocation.as_ref().is_some_and(|id| id.as_str() == invocation)
}

fn check_decision(facts: &[StoredFact], answer: &v1::EvaluateResponse) {
    let of_invocation: Vec<_> = facts.iter().filter(|stored| is_of(stored, &answer.invocation_id)).collect();
    // The answer names the last fact of the decision: of a refusal, the one that closes it.
    let last = of_invocation.iter().find(|stored| stored.sequence == answer.sequence);
    let last = last.expect("an acknowledged decision is on record");
    assert_eq!((last.position, last.attempt), (answer.position, answer.attempt));
    assert_eq!(last.tool_call.as_ref().unwrap().as_str(), answer.tool_call_id);
    let decision = of_invocation.iter().find(|stored| stored.fact.kind() == FactKind::GovernanceEvaluated);
    let decision = decision.expect("the decision is on record");
    assert!(decision.sequence <= answer.sequence);
    let Fact::GovernanceEvaluated(evaluated) = &decision.fact else { panic!("{decision:?}") };
    let decision = format!("{:?}", evaluated.trace.decision).to_uppercase();
    assert_eq!(answer.decision().as_str_name(), format!("DECISION_{decision}"));
    assert_eq!(evaluated.trace.code.as_ref().map_or("", |code| code.as_str()), answer.code);
    assert_eq!(evaluated.generation.number, answer.generation.as_ref().unwrap().number);
}

/// Every invocation began and was decided, and what was refused is closed.
fn check_lives(facts: &[StoredFact]) {
    let mut lives: HashMap<&str, Vec<FactKind>> = HashMap::new();
    for stored in facts {
        lives.entry(stored.invocation.as_ref().unwrap().as_str()).or_default().push(stored.fact.kind());
    }
    for (invocation, life) in lives {
        let whole = match life.as_slice() {
            [FactKind::ToolCallStarted, FactKind::GovernanceEvaluated] => true,
            [FactKind::ToolCallStarted, FactKind::GovernanceEvaluated, end] => {
                matches!(end, FactKind::ToolCallCompleted | FactKind::ToolCallFailed | FactKind::ToolCallCancelled)
            }
            [FactKind::ToolCallStarted, end] => *end == FactKind::ToolCallCancelled,
            _ => false,
        };
        assert!(whole, "{invocation}: {life:?}");
    }
    for stored in facts {
        let Fact::ToolCallCancelled(terminal) = &stored.fact else { continue };
        let why = format!("{:?}", terminal.governed);
        assert!(why.contains(codes::INTERRUPTED.as_str()) || why.contains(codes::JOURNAL_UNAVAILABLE.as_str()), "{why}");
    }
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
    let history = History::System(tollgate_domain::SystemRun::Sidecar(id.parse().unwrap()));
    let facts = journal_file::facts(&setup.journal_path(), &history).await;
    let kinds: Vec<_> = facts.iter().map(|stored| stored.fact.kind()).collect();
    let start = [FactKind::SidecarStarted, FactKind::ConfigurationLoosened];
    assert_eq!(kinds, [start, start].concat());
}
