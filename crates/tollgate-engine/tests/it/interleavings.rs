//! Random interleavings of everything that can happen to one engine, and what must hold of them all.

use std::{collections::HashMap, sync::Arc, time::Duration};

use proptest::prelude::*;
use tollgate_domain::{
    Decision, Fact, FactQuery, History, InvocationState, PageLimit, Reader, Recorded, Reported, StoredFact, UnavailableCause,
    VerdictKind,
};

use crate::harness::{Does, FakeHook, Fault, Sent, World, call, hook, run};

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Cancel(usize),
    HangUp(usize),
    Complete(u8),
    Swap,
    Fault(Fault),
    LetGo,
    RefuseRead,
    Fail(Option<UnavailableCause>),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    use UnavailableCause::{Full, Io};
    let faults = [Fault::Refuse(Full), Fault::LandUnsaid(Io), Fault::LoseUnsure(Io), Fault::Stall, Fault::None];
    prop_oneof![
        6 => (0..12_u8).prop_map(Step::Send),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::HangUp),
        2 => (0..12_u8).prop_map(Step::Complete),
        1 => Just(Step::Swap),
        2 => proptest::sample::select(faults.to_vec()).prop_map(Step::Fault),
        2 => Just(Step::LetGo),
        1 => Just(Step::RefuseRead),
        1 => proptest::option::of(Just(Full)).prop_map(Step::Fail),
        4 => proptest::sample::select(vec![0_u64, 1, 50, 400, 6_000]).prop_map(Step::Wait),
    ]
}

/// Generation by generation the hooks change their minds; each names its generation in its code.
fn hooks(generation: u64) -> Vec<FakeHook> {
    let code: &'static str = ["even", "odd"][usize::try_from(generation % 2).unwrap()];
    let content = format!("content {generation}");
    let slow = hook("a").content(&content).does(Does::AllowAfter(Duration::from_millis(30))).told(Does::Allow);
    let deciding = hook("b").content(&content).told(Does::Fail("audit_down"));
    let deciding = if generation.is_multiple_of(3) { deciding.does(Does::Deny(code)) } else { deciding };
    let shadow = hook("c").content(&content).shadow().does(Does::Deny(code));
    // Every other generation asks one of them elsewhere.
    vec![if generation.is_multiple_of(2) { slow.remote() } else { slow }, deciding, shadow]
}

async fn every_fact(world: &World) -> Vec<StoredFact> {
    let (mut facts, mut after_sequence) = (Vec::new(), 0);
    loop {
        let query = FactQuery {
            history: History::Run(run()),
            filter: tollgate_domain::FactFilter::default(),
            after_sequence,
            limit: PageLimit::new(200).unwrap(),
        };
        let Some(page) = world.store.inner.facts(query).await.unwrap() else { return facts };
        facts.extend(page.facts);
        match page.next {
            Some(next) => after_sequence = next,
            None => return facts,
        }
    }
}

/// Plays the steps and gives what callers were told, and what the journal holds.
async fn play(steps: Vec<Step>) -> (Vec<Recorded>, Vec<StoredFact>) {
    let world = World::with(hooks(1)).await;
    let (mut in_flight, mut generation): (Vec<Sent>, u64) = (Vec::new(), 1);
    let mut completing = Vec::new();
    for step in steps {
        match step {
            Step::Send(id) => {
                let mut call = call(&format!("i-{id}"));
                call.tool_call = Some(format!("call-{}", id % 4).parse().unwrap());
                in_flight.push(world.send(call));
            }
            Step::Cancel(which) if !in_flight.is_empty() => in_flight[which % in_flight.len()].cancel.cancel(),
            Step::HangUp(which) if !in_flight.is_empty() => {
                let which = which % in_flight.len();
                in_flight.swap_remove(which).hang_up();
            }
            Step::Cancel(_) | Step::HangUp(_) => {}
            Step::Complete(id) => {
                let (engine, id) = (Arc::clone(&world.engine), format!("i-{id}").parse().unwrap());
                let reported = Reported::Succeeded { tool_error: false };
                completing.push(tokio::spawn(async move {
                    let rights = tollgate_domain::Rights::default();
                    drop(engine.complete(&rights, run(), id, reported, Duration::from_secs(10)).await);
                }));
            }
            Step::Swap => {
                // An activation waits for a failing journal; this one must not.
                world.fail(None);
                generation += 1;
                world.activate(&format!("revision {generation}"), hooks(generation)).await;
            }
            Step::Fault(fault) => world.store.next([fault]),
            Step::LetGo => world.store.let_go(),
            Step::RefuseRead => world.store.refuse_one_invocation(),
            Step::Fail(cause) => world.fail(cause),
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }
    world.fail(None);
    (0..64).for_each(|_| world.store.let_go());
    let mut told = Vec::new();
    for sent in in_flight {
        told.extend(sent.answer().await);
    }
    for completing in completing {
        completing.await.unwrap();
    }
    // Whatever is left to settle has time to.
    tokio::time::sleep(Duration::from_mins(1)).await;
    (told, every_fact(&world).await)
}

/// The facts of each invocation, in order.
fn by_invocation(facts: &[StoredFact]) -> HashMap<String, Vec<&StoredFact>> {
    let mut invocations: HashMap<String, Vec<&StoredFact>> = HashMap::new();
    for fact in facts {
        invocations.entry(fact.invocation.as_ref().unwrap().as_str().to_owned()).or_default().push(fact);
    }
    invocations
}

fn assert_sequences_have_no_gaps(facts: &[StoredFact]) {
    for (fact, sequence) in facts.iter().zip(1..) {
        assert_eq!(fact.sequence, sequence);
    }
    for pair in facts.windows(2) {
        assert_eq!(pair[1].previous, pair[0].digest);
        assert!(pair[1].position > pair[0].position);
    }
}

fn assert_lives_are_possible_and_decided(invocations: &HashMap<String, Vec<&StoredFact>>) {
    for (id, facts) in invocations {
        let end = facts.iter().fold(InvocationState::Absent, |state, stored| state.step(&stored.fact).unwrap());
        assert_ne!(end, InvocationState::Started, "{id} is undecided after everything healed");
        assert_ne!(end, InvocationState::Refused, "{id} was refused without an end");
    }
}

fn assert_traces_are_of_one_generation(facts: &[StoredFact]) {
    for stored in facts {
        let Fact::GovernanceEvaluated(evaluated) = &stored.fact else { continue };
        for entry in evaluated.trace.hooks.iter().filter(|entry| entry.resource.is_some()) {
            // Every hook changes with every generation, so their numbers are equal.
            assert_eq!(entry.resource.as_ref().unwrap().generation, evaluated.generation.number);
            if entry.verdict == VerdictKind::Denied {
                let code = ["even", "odd"][usize::try_from(evaluated.generation.number % 2).unwrap()];
                assert_eq!(entry.code.as_ref().unwrap().as_str(), code);
            }
        }
    }
}

fn assert_what_was_told_is_on_record(told: &[Recorded], invocations: &HashMap<String, Vec<&StoredFact>>) {
    for answer in told {
        let decided = answer.decided();
        let facts = &invocations[decided.invocation.as_str()];
        let found = facts.iter().find_map(|stored| match &stored.fact {
            Fact::GovernanceEvaluated(evaluated) => Some((stored, evaluated)),
            _other => None,
        });
        let (stored, evaluated) = found.unwrap();
        assert_eq!((stored.attempt, &evaluated.generation), (decided.attempt, &decided.generation));
        match answer {
            Recorded::Allowed(pass) => {
                assert_eq!(evaluated.trace.decision, Decision::Allow);
                assert_eq!(evaluated.valid_until, Some(pass.valid_until()));
                assert_eq!(stored.sequence, decided.sequence);
                let unsaid = |stored: &&StoredFact| matches!(&stored.fact, Fact::ToolCallCancelled(_));
                assert!(!facts.iter().any(unsaid), "an ALLOW that was told was closed as untold");
            }
            Recorded::Refused(refusal) => assert_eq!(evaluated.trace.decision, refusal.decision),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_answer_has_its_durable_fact(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (told, facts) = runtime.block_on(play(steps));
        let invocations = by_invocation(&facts);
        assert_sequences_have_no_gaps(&facts);
        assert_lives_are_possible_and_decided(&invocations);
        assert_traces_are_of_one_generation(&facts);
        assert_what_was_told_is_on_record(&told, &invocations);
    }
}
