//! Generations are swapped while clients ask: every answer, and every trace, is of one generation.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::StreamExt as _;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tollgate_client::{
    Gate,
    v1::{self, evaluate_stream_response::Answer, history_entry::Event},
};
use tollgate_domain::Fact;
use tollgate_journal::SqliteReader;
use tollgate_tests::{
    journal_file,
    sidecar::{Setup, Sidecar, eventually},
    trees::{self, Tree},
    wire,
};

const SWAPS: u32 = 24;
const CLIENTS: usize = 6;
const PIPELINED: usize = 16;

/// Two hooks that agree within a bundle and contradict those of the other. Hook by hook the rule is the
/// other way round, so that any mixture shows.
fn bundle(name: &str) -> Tree {
    let allow = "@id(\"may\")\npermit (principal, action, resource);\n".to_owned();
    let deny = "@id(\"must-not\")\n@code(\"CODE\")\nforbid (principal, action, resource == Tollgate::Tool::\"desk.read\");\n";
    let second = "id: second\nkind: cedar\norder: 5\nmode: forbid_only\n";
    let denied = deny.replace("CODE", &format!("denied_by_{name}"));
    let (desk, other) = match name {
        "open" => (allow, deny.replace("desk.read", "desk.write").replace("CODE", "denied_by_open")),
        _ => (format!("{allow}\n{denied}"), denied.replace("desk.read", "desk.write")),
    };
    trees::with(
        trees::gate(),
        &[("hooks/desk/desk.cedar", &desk), ("hooks/second/hook.yaml", second), ("hooks/second/second.cedar", &other)],
    )
}

/// The generation and decision of an answer.
type Told = (String, u64, v1::Decision);

fn told(response: &v1::EvaluateResponse) -> Told {
    let generation = response.generation.clone().unwrap();
    (generation.digest, generation.number, response.decision())
}

#[tokio::test]
async fn p03_no_answer_and_no_trace_mixes_two_generations_while_they_are_swapped() {
    let setup = Setup::without_bundle();
    trees::publish(&bundle("open"), &setup.bundle(), 0);
    let sidecar = setup.start().await;
    let mut rules = HashMap::from([(sidecar.generation().await.digest, v1::Decision::Allow)]);

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    let runs: Vec<_> = (0..CLIENTS).map(|_| wire::run()).collect();
    for (number, run) in runs.iter().enumerate() {
        let (gate, run, stop) = (sidecar.gate().await, run.clone(), Arc::clone(&stop));
        if number % 2 == 0 {
            clients.spawn(ask(gate, run, stop));
        } else {
            clients.spawn(stream(gate, run, stop));
        }
    }
    for version in 1..=SWAPS {
        let (name, rule) = if version % 2 == 1 { ("closed", v1::Decision::Deny) } else { ("open", v1::Decision::Allow) };
        let before = sidecar.generation().await;
        trees::publish(&bundle(name), &sidecar.setup().bundle(), version);
        let now = eventually("a swap", async || Some(sidecar.generation().await).filter(|now| now.digest != before.digest)).await;
        assert!(now.number > before.number, "numbers rise");
        rules.insert(now.digest, rule);
    }
    stop.store(true, Ordering::Relaxed);
    let told: Vec<Told> = clients.join_all().await.into_iter().flatten().collect();

    assert_eq!(rules.len(), 2);
    for (digest, number, decision) in &told {
        assert_eq!(rules.get(digest), Some(decision), "an answer of generation {number}");
    }
    let both = |decision| told.iter().filter(|(_, _, told)| *told == decision).count();
    assert!(both(v1::Decision::Allow) > 20 && both(v1::Decision::Deny) > 20, "both rules were asked, {} times", told.len());

    let activated = activations(&sidecar).await;
    assert_eq!(activated.len(), usize::try_from(SWAPS).unwrap() + 1);
    let (status, setup) = sidecar.stop().await;
    assert!(status.success());
    let reader = SqliteReader::open(setup.journal_path()).await.unwrap();
    for run in &runs {
        for stored in journal_file::facts_from(&reader, &journal_file::history(run)).await {
            let Fact::GovernanceEvaluated(evaluated) = &stored.fact else { continue };
            let (digest, hooks) = &activated[&evaluated.generation.number];
            assert_eq!(*digest, evaluated.generation.digest.to_string());
            for entry in &evaluated.trace.hooks {
                let resource = entry.resource.as_ref().unwrap();
                let expected = (resource.generation, entry.digest.unwrap().to_string());
                assert_eq!(hooks[resource.id.as_str()], expected, "a hook of another generation in {evaluated:?}");
            }
        }
    }
    reader.close().await;
}

async fn ask(gate: Gate, run: v1::RunKey, stop: Arc<AtomicBool>) -> Vec<Told> {
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let answer = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap();
        answers.push(told(answer.response()));
    }
    answers
}

/// As [`ask`], over one stream with several elements in flight.
async fn stream(gate: Gate, run: v1::RunKey, stop: Arc<AtomicBool>) -> Vec<Told> {
    let (elements, receiver) = mpsc::channel(PIPELINED);
    let mut stream = gate.raw().evaluate_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    let ask = async || elements.send(wire::element(wire::call(&run, "desk.read", "{}"))).await.unwrap();
    for _ in 0..PIPELINED {
        ask().await;
    }
    let (mut answers, mut in_flight) = (Vec::new(), PIPELINED);
    while in_flight > 0 {
        let answer = stream.next().await.unwrap().unwrap();
        let Some(Answer::Response(response)) = answer.answer else { panic!("an element got no decision: {answer:?}") };
        answers.push(told(&response));
        if stop.load(Ordering::Relaxed) {
            in_flight -= 1;
        } else {
            ask().await;
        }
    }
    answers
}

/// Digest and hooks of every activated generation, by number.
async fn activations(sidecar: &Sidecar) -> BTreeMap<u64, (String, HashMap<String, (u64, String)>)> {
    let request = v1::ListHistoryRequest { limit: 200, ..Default::default() };
    let entries = sidecar.policy().await.list_history(request).await.unwrap().into_inner().entries;
    let activated = entries.into_iter().filter_map(|entry| match entry.event {
        Some(Event::Activated(activated)) => Some(activated),
        _ => None,
    });
    activated
        .map(|activated| {
            let generation = activated.generation.unwrap();
            let hooks = activated.hooks.into_iter().map(|hook| (hook.resource_id, (hook.generation, hook.digest)));
            (generation.number, (generation.digest, hooks.collect()))
        })
        .collect()
}
