//! Stored facts: whatever decodes is written back the same, and can be told to a reader.

use prost::Message;
use tollgate_domain::{Digest, Fact, FactFilter, FactKind, InvocationState, StoredFact};
use tollgate_proto::v1;
use tollgate_server::reading;

/// Checks the stored form with these bytes as a fact's body.
pub fn check(data: &[u8]) {
    let Ok(fact) = Fact::decode(data) else { return };
    let written = fact.encode().unwrap();
    assert_eq!(Fact::decode(&written).unwrap(), fact, "a fact changed on its way through the store");
    assert_eq!(Fact::decode(&written).unwrap().encode().unwrap(), written);
    assert!(FactKind::ALL.contains(&fact.kind()));

    let states = ["absent", "started", "open", "refused", "completed", "failed", "cancelled"];
    for state in states.map(|name| InvocationState::from_name(name).unwrap()) {
        let follows = state.step(&fact);
        assert!(!(state.is_terminal() && follows.is_ok()), "a fact follows the last one");
        assert_ne!(follows, Ok(InvocationState::Absent));
    }
    told(fact);
}

fn told(fact: Fact) {
    let stored = StoredFact {
        sequence: 1,
        position: 1,
        tool_call: None,
        invocation: None,
        tool: None,
        attempt: 1,
        previous: Digest::of(b"genesis"),
        digest: Digest::of(b"own"),
        fact,
    };
    assert!(FactFilter::default().matches(&stored));
    match (reading::fact(stored.clone()), reading::history_entry(stored)) {
        (Some(told), None) => assert_eq!(v1::Fact::decode(told.encode_to_vec().as_slice()).unwrap(), told),
        (None, Some(told)) => assert_eq!(v1::HistoryEntry::decode(told.encode_to_vec().as_slice()).unwrap(), told),
        (None, None) => {}
        (Some(_), Some(_)) => panic!("a fact is of a run and of a bundle"),
    }
}
