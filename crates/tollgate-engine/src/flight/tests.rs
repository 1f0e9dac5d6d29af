//! How much is remembered of decided invocations, and how long a flight keeps others waiting.

use tollgate_domain::{Digest, InvocationId, OwnerKind};

use super::*;

fn key(number: usize) -> FlightKey {
    let run = RunKey {
        tenant: "acme".parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: "run-1".parse().unwrap(),
    };
    (run, InvocationId::parse(&format!("i-{number}")).unwrap())
}

fn compared(flights: &Flights, number: usize) -> Comparison {
    match flights.enter(key(number), Digest::of(b"call")) {
        Entrance::First(_flight, comparison) => comparison,
        Entrance::Wait(_) | Entrance::Different => panic!("somebody else is in flight"),
    }
}

#[test]
fn b10_16384_decided_invocations_are_remembered_and_the_oldest_is_forgotten_first() {
    let flights = Flights::default();
    for number in 0..=REMEMBERED_MAX_COUNT {
        let Entrance::First(flight, _) = flights.enter(key(number), Digest::of(b"call")) else { panic!("not first") };
        flight.remember(None);
    }
    assert!(matches!(compared(&flights, 0), Comparison::Unknown));
    assert!(matches!(compared(&flights, 1), Comparison::Identical(None)));
    assert!(matches!(compared(&flights, REMEMBERED_MAX_COUNT), Comparison::Identical(None)));
    assert_eq!(lock(&flights.0).oldest.len(), REMEMBERED_MAX_COUNT);
}

#[test]
fn b10_others_wait_for_a_flight_until_it_is_dropped_decided_or_not() {
    let flights = Flights::default();
    let Entrance::First(flight, Comparison::Unknown) = flights.enter(key(1), Digest::of(b"call")) else { panic!("not first") };
    let Entrance::Wait(landed) = flights.enter(key(1), Digest::of(b"call")) else { panic!("does not wait") };
    assert!(matches!(flights.enter(key(1), Digest::of(b"other")), Entrance::Different));
    assert!(!landed.is_cancelled());
    drop(flight);
    assert!(landed.is_cancelled());
    assert!(matches!(compared(&flights, 1), Comparison::Unknown));
}

#[test]
fn b10_what_is_remembered_tells_another_call_apart() {
    let flights = Flights::default();
    let Entrance::First(flight, _) = flights.enter(key(1), Digest::of(b"call")) else { panic!("not first") };
    flight.remember(Some(Message::new("told".to_owned())));
    drop(flight);
    let Comparison::Identical(Some(message)) = compared(&flights, 1) else { panic!("forgotten") };
    assert_eq!(message.tell(), "told");
    let Entrance::First(_flight, comparison) = flights.enter(key(1), Digest::of(b"other")) else { panic!("not first") };
    assert!(matches!(comparison, Comparison::Different));
}
