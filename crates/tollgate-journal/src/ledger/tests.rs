//! What a ledger asks for, keeps and forgets. The rules of an append are tested with the stores.

use tollgate_domain::{Agent, CallRecord, OwnerKind, RunKey, Runtime, SidecarId, Started, Subject, Timestamp, ToolRef};

use super::*;

const START: Counters = Counters { history: 1, position: 1 };

fn begin(run: &str, invocation: &str) -> Prepared {
    let tool: ToolId = "mail.send".parse().unwrap();
    let subject = Subject {
        agent: Agent { id: "agent".parse().unwrap(), revision: "1".parse().unwrap() },
        principal: None,
        tool: ToolRef { id: tool.clone(), provider: None, external_name: None },
    };
    let call = CallRecord {
        subject,
        arguments_bytes: 2,
        derived_with: None,
        claimed_groups: Vec::new(),
        claimed_approval: None,
        claims_trusted: false,
        runtime: Runtime::default(),
    };
    let run = RunKey {
        tenant: "acme".parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: run.parse().unwrap(),
    };
    let sidecar = SidecarId::parse("sidecar").unwrap();
    let fact = Fact::ToolCallStarted(Started { call, sidecar, at: Timestamp::from_micros(1) });
    let key = InvocationKey { tool_call: "call".parse().unwrap(), invocation: invocation.parse().unwrap(), tool };
    let bodies = vec![fact.encode().unwrap()];
    Prepared { entry: Entry { history: History::Run(run), invocation: Some(key), facts: vec![fact] }, bodies }
}

/// One batch of one entry, as a writer does it; answers what had to be loaded.
fn batch_of(ledger: &mut Ledger, prepared: Prepared, found: impl Fn() -> Found) -> usize {
    let wanted = ledger.wanted(std::iter::once(&prepared.entry));
    let count = wanted.len();
    for wanted in wanted {
        ledger.learn(wanted, found());
    }
    ledger.append(prepared, &mut Batch::default()).unwrap();
    count
}

#[test]
fn history_that_began_here_is_never_loaded_again() {
    let mut ledger = Ledger::new(START);
    assert_eq!(batch_of(&mut ledger, begin("run", "first"), Found::default), 1);
    assert_eq!(batch_of(&mut ledger, begin("run", "second"), Found::default), 0);
}

#[test]
fn history_that_was_found_is_asked_about_what_is_not_known_of_it() {
    let mut ledger = Ledger::new(Counters { history: 8, position: 8 });
    let found = || Found { history: Some((7, 3, Digest::of(b"last"))), ..Found::default() };
    assert_eq!(batch_of(&mut ledger, begin("run", "first"), found), 1);
    assert_eq!(ledger.history(&begin("run", "x").entry.history).unwrap().sequence, 4);
    assert_eq!(batch_of(&mut ledger, begin("run", "second"), found), 1);
}

#[test]
fn equal_needs_are_asked_once() {
    let mut ledger = Ledger::new(START);
    let entries = [begin("run", "first").entry, begin("run", "first").entry, begin("run", "second").entry];
    assert_eq!(ledger.wanted(entries.iter()).len(), 2);
}

#[test]
fn ledger_forgets_the_histories_used_longest_ago() {
    let mut ledger = Ledger::new(START);
    for n in 0..=KEPT_MAX_COUNT / 3 {
        batch_of(&mut ledger, begin(&format!("run-{n}"), "first"), Found::default);
    }
    assert_eq!(batch_of(&mut ledger, begin(&format!("run-{}", KEPT_MAX_COUNT / 3), "second"), Found::default), 0);
    assert_eq!(batch_of(&mut ledger, begin("run-0", "second"), Found::default), 1);
    assert!(ledger.kept <= KEPT_MAX_COUNT);
}

#[test]
fn ledger_forgets_a_single_history_that_grew_too_large() {
    let mut ledger = Ledger::new(START);
    for n in 0..=KEPT_MAX_COUNT {
        batch_of(&mut ledger, begin("run", &format!("invocation-{n}")), || Found {
            history: Some((1, 1, Digest::of(b"last"))),
            ..Found::default()
        });
        assert!(ledger.kept <= KEPT_MAX_COUNT + 6);
    }
}

fn look(ledger: &Ledger, prepared: &Prepared) -> Result<u32, Unknown> {
    let key = prepared.entry.invocation.as_ref().unwrap();
    let found = ledger.lookup(&prepared.entry.history, &key.tool_call, &key.invocation);
    found.map(|lookup| lookup.attempts)
}

/// A policy may never be shown an attempt that a crash could take back.
#[test]
fn attempt_is_told_only_once_it_is_durable() {
    let mut ledger = Ledger::new(START);
    batch_of(&mut ledger, begin("run", "first"), Found::default);
    let second = begin("run", "second");
    assert!(!look(&ledger, &second).unwrap_err().history);
    ledger.settle();
    assert_eq!(look(&ledger, &second).unwrap(), 1);
}

#[test]
fn invocation_that_is_known_and_a_history_known_in_part_are_looked_up_in_the_store() {
    let mut ledger = Ledger::new(Counters { history: 8, position: 8 });
    batch_of(&mut ledger, begin("new", "first"), Found::default);
    batch_of(&mut ledger, begin("old", "first"), || Found { history: Some((7, 3, Digest::of(b"last"))), ..Found::default() });
    ledger.settle();
    assert!(!look(&ledger, &begin("new", "first")).unwrap_err().history);
    assert!(!look(&ledger, &begin("old", "second")).unwrap_err().history);
}

#[test]
fn history_that_was_looked_up_is_neither_looked_up_nor_loaded_again() {
    let mut ledger = Ledger::new(START);
    let first = begin("run", "first");
    let history = first.entry.history.clone();
    let unknown = look(&ledger, &first).unwrap_err();
    assert!(unknown.history);
    ledger.remember(unknown, history.clone(), Known::absent(&history));
    assert_eq!(look(&ledger, &first).unwrap(), 0);
    assert_eq!(batch_of(&mut ledger, first, Found::default), 0);
}

/// The answer of a slow lookup is older than what was committed, or given up, in the meantime.
#[test]
fn what_was_read_before_something_was_written_or_forgotten_is_not_remembered() {
    let first = begin("run", "first");
    let history = first.entry.history.clone();

    let mut ledger = Ledger::new(START);
    let unknown = look(&ledger, &first).unwrap_err();
    batch_of(&mut ledger, begin("run", "other"), Found::default);
    ledger.remember(unknown, history.clone(), Known::absent(&history));
    assert_eq!(ledger.history(&history).unwrap().sequence, 1);

    ledger.reset(Counters { history: 2, position: 2 });
    ledger.remember(unknown, history.clone(), Known::absent(&history));
    assert!(ledger.history(&history).is_none());
    let unknown = look(&ledger, &first).unwrap_err();
    for n in 0..=KEPT_MAX_COUNT / 3 + 1 {
        batch_of(&mut ledger, begin(&format!("run-{n}"), "first"), Found::default);
    }
    ledger.remember(unknown, history.clone(), Known::absent(&history));
    assert!(ledger.history(&history).is_none());
}
