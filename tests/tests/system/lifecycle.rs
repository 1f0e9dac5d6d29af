//! Health, reflection, admission, and how a sidecar ends.

use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tollgate_client::{connect, v1};
use tollgate_domain::FactKind;
use tollgate_tests::{
    journal_file::{self, Hold},
    sidecar::{Setup, Sidecar, eventually},
    wire,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt as _;

/// Sends a call that waits for the journal.
async fn in_flight(sidecar: &Sidecar, calls: &mut JoinSet<Result<v1::EvaluateResponse, tollgate_client::CallError>>) {
    let gate = sidecar.gate().await;
    calls.spawn(async move {
        let answer = gate.evaluate_within(wire::call(&wire::run(), "desk.read", "{}"), Duration::from_secs(20)).await;
        answer.map(|answer| answer.response().clone())
    });
}

#[tokio::test]
async fn every_service_of_a_door_has_a_health_and_an_unknown_one_has_none() {
    let sidecar = Setup::new().start().await;
    for service in ["", "tollgate.v1.GovernanceService", "tollgate.liveness"] {
        assert_eq!(sidecar.health(service).await, Some(ServingStatus::Serving), "{service:?}");
    }
    assert_eq!(sidecar.health("tollgate.v1.JournalService").await, None, "it stands behind the other door");
    let mut client = HealthClient::new(connect(&sidecar.read()).await.unwrap());
    for service in ["", "tollgate.v1.JournalService", "tollgate.v1.PolicyService", "tollgate.liveness"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        assert_eq!(client.check(request).await.unwrap().into_inner().status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn reflection_lists_what_stands_behind_a_door() {
    let sidecar = Setup::new().start().await;
    for address in [sidecar.data(), sidecar.read()] {
        let mut client = ServerReflectionClient::new(connect(&address).await.unwrap());
        let ask = |request| ServerReflectionRequest { host: String::new(), message_request: Some(request) };
        let requests = vec![
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol("tollgate.v1.GovernanceService".to_owned())),
        ];
        let answers = client.server_reflection_info(tokio_stream::iter(requests)).await.unwrap().into_inner();
        let answers: Vec<_> = answers.map(|answer| answer.unwrap().message_response.unwrap()).collect().await;
        let MessageResponse::ListServicesResponse(services) = &answers[0] else { panic!("{answers:?}") };
        let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
        for name in ["tollgate.v1.GovernanceService", "grpc.health.v1.Health"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(matches!(answers[1], MessageResponse::FileDescriptorResponse(_)), "{:?}", answers[1]);
    }
}

#[tokio::test]
async fn sigterm_says_not_serving_first_finishes_what_is_in_flight_and_ends_with_zero() {
    let sidecar = Setup::new().start().await;
    let mut health = HealthClient::new(connect(&sidecar.data()).await.unwrap());
    let watch = HealthCheckRequest { service: String::new() };
    let mut watch = health.watch(watch).await.unwrap().into_inner();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving);

    let hold = Hold::take(&sidecar.setup().journal_path());
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        in_flight(&sidecar, &mut calls).await;
    }
    all_arrived(&sidecar).await;
    sidecar.signal(Signal::TERM);
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    drop((watch, health));
    assert!(calls.try_join_next().is_none(), "they are in flight");
    drop(hold);
    let answers = calls.join_all().await;
    let (status, setup) = sidecar.ended().await;
    assert_eq!(status.code(), Some(0));
    for answer in answers {
        assert_eq!(answer.unwrap().decision(), v1::Decision::Allow);
    }
    let log = std::fs::read_to_string(setup.directory().join("log")).unwrap();
    assert!(log.contains("shutting down signal=\"SIGTERM\"") && log.contains("everything is recorded"), "{log}");
    let sidecar = setup.start().await;
    assert!(sidecar.log().contains("recovery=Clean"), "the journal was closed in order: {}", sidecar.log());
}

/// Waits until the calls that were sent before have arrived: one that is sent after them, and is cut by its
/// own limit while it waits for the journal, has been behind them.
async fn all_arrived(sidecar: &Sidecar) {
    let gate = sidecar.gate().await;
    let probe = gate.evaluate_within(wire::call(&wire::run(), "desk.read", "{}"), Duration::from_millis(300)).await;
    assert_eq!(probe.unwrap_err().code, Code::DeadlineExceeded);
}

#[tokio::test]
async fn sigint_ends_it_too_and_a_watcher_of_its_health_does_not_hold_it_up() {
    let sidecar = Setup::new().set("shutdown.drain", "60s").start().await;
    let mut health = HealthClient::new(connect(&sidecar.data()).await.unwrap());
    let mut watch = health.watch(HealthCheckRequest { service: String::new() }).await.unwrap().into_inner();
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::Serving);
    sidecar.signal(Signal::INT);
    assert_eq!(watch.next().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(watch.next().await.is_none(), "it is told, and its stream ends");
    let (status, _) = sidecar.ended().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn p08_what_is_still_in_flight_after_the_drain_time_is_not_waited_for() {
    let sidecar = Setup::new().set("shutdown.drain", "300ms").start().await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let mut calls = JoinSet::new();
    in_flight(&sidecar, &mut calls).await;
    all_arrived(&sidecar).await;
    sidecar.signal(Signal::TERM);
    let (status, setup) = sidecar.ended().await;
    drop(hold);
    assert_eq!(status.code(), Some(0));
    let answer = calls.join_next().await.unwrap().unwrap();
    // Whatever its caller was told, the next start finds a journal that is whole.
    let sidecar = setup.start().await;
    drop(answer);
    assert!(sidecar.generation().await.number >= 1);
}

#[tokio::test]
async fn more_calls_in_flight_than_the_limit_are_refused_and_may_be_sent_again() {
    let sidecar = Setup::new().set("limits.in_flight", "3").start().await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        in_flight(&sidecar, &mut calls).await;
    }
    let gate = sidecar.gate().await;
    let call = wire::call(&wire::run(), "desk.read", "{}");
    // Until the three have their places, this one finds one and is cut by its limit.
    let error = eventually("a refusal", async || {
        let error = gate.evaluate_within(call.clone(), Duration::from_millis(100)).await.unwrap_err();
        (error.reason.as_deref() == Some("OVERLOADED")).then_some(error)
    })
    .await;
    assert_eq!(error.code, Code::ResourceExhausted);
    assert!(error.may_send_again() && error.message.contains("3 calls"), "{error}");
    drop(hold);
    for answer in calls.join_all().await {
        assert_eq!(answer.unwrap().decision(), v1::Decision::Allow);
    }
    let fresh = wire::call(&wire::run(), "desk.read", "{}");
    assert_eq!(gate.evaluate(fresh).await.unwrap().response().decision(), v1::Decision::Allow);
}

#[tokio::test]
async fn calls_that_come_faster_than_the_rate_are_refused_and_later_ones_are_taken() {
    let sidecar = Setup::new().set("limits.per_second", "5").start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let mut refused = 0;
    for _ in 0..20 {
        match gate.evaluate(wire::call(&run, "desk.read", "{}")).await {
            Ok(answer) => assert_eq!(answer.response().decision(), v1::Decision::Allow),
            Err(error) => {
                assert_eq!((error.code, error.reason.as_deref()), (Code::ResourceExhausted, Some("RATE_LIMITED")), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "twenty calls at once are more than five a second");
    let late = eventually("a call that is taken", async || gate.evaluate(wire::call(&run, "desk.read", "{}")).await.ok()).await;
    assert_eq!(late.response().decision(), v1::Decision::Allow);
    // Health is not a call.
    assert_eq!(sidecar.health("").await, Some(ServingStatus::Serving));
}

#[tokio::test]
async fn h15_a_callers_deadline_cuts_the_call_and_it_is_never_allowed() {
    let sidecar = Setup::new().start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let hold = Hold::take(&sidecar.setup().journal_path());
    let error = gate.evaluate_within(wire::call(&run, "desk.read", "{}"), Duration::from_millis(250)).await.unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
    assert_eq!(error.reason.as_deref(), Some("JOURNAL_UNAVAILABLE"), "the sidecar answers before the caller gives up");
    // A caller that goes away without a deadline cuts it as well.
    let leaving = gate.evaluate(wire::call(&run, "desk.read", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(200), leaving).await.is_err());
    drop(hold);
    eventually("no open call", async || {
        let facts = journal_file::facts(&sidecar.setup().journal_path(), &journal_file::history(&run)).await;
        let ended = facts.iter().filter(|stored| stored.fact.kind() == FactKind::ToolCallCancelled).count();
        let begun = facts.iter().filter(|stored| stored.fact.kind() == FactKind::ToolCallStarted).count();
        (begun == ended).then_some(())
    })
    .await;
}

#[tokio::test]
async fn g12_a_journal_that_is_too_slow_refuses_within_the_sidecars_limit_and_the_decision_is_closed() {
    let sidecar = Setup::new().set("journal.max_wait", "200ms").start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let hold = Hold::take(&sidecar.setup().journal_path());
    let status = gate.raw().evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap_err();
    let info = status.get_details_error_info().unwrap();
    assert_eq!((status.code(), info.reason.as_str()), (Code::Unavailable, "JOURNAL_UNAVAILABLE"));
    assert_eq!(info.metadata["cause"], "too_slow");
    drop(hold);
    let own = eventually("a closed decision", async || {
        let facts = journal_file::facts(&sidecar.setup().journal_path(), &journal_file::history(&run)).await;
        (facts.last().map(|stored| stored.fact.kind()) == Some(FactKind::ToolCallCancelled)).then_some(facts)
    });
    assert_eq!(own.await.len(), 3);
    assert_eq!(gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().response().decision(), v1::Decision::Allow);
}
