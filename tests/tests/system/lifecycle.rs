//! Health, reflection, admission, and how a sidecar ends.

use std::time::Duration;

use futures_util::StreamExt as _;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tollgate_client::{
    CallError, Gate, connect,
    v1::{self, evaluate_stream_response::Answer},
};
use tollgate_domain::FactKind;
use tollgate_tests::{
    journal_file::{self, Hold},
    sidecar::{Setup, eventually},
    wire,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt as _;

use crate::metrics;

type Answers = JoinSet<Result<v1::EvaluateResponse, CallError>>;

/// Sends calls over one connection, which wait for the journal, and waits until all of them have arrived: a
/// last one, behind them on the connection, is cut by its own limit while it waits as well.
async fn in_flight(gate: &Gate, count: usize) -> Answers {
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let gate = gate.clone();
        calls.spawn(async move {
            let answer = gate.evaluate_within(wire::call(&wire::run(), "desk.read", "{}"), Duration::from_secs(20)).await;
            answer.map(|answer| answer.response().clone())
        });
    }
    // The tasks send before this one does.
    tokio::task::yield_now().await;
    let last = gate.evaluate_within(wire::call(&wire::run(), "desk.read", "{}"), Duration::from_millis(300)).await;
    assert!(matches!(last.unwrap_err().code, Code::DeadlineExceeded | Code::ResourceExhausted));
    calls
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
    let mut calls = in_flight(&sidecar.gate().await, 4).await;
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
async fn p08_a_journal_that_is_stuck_does_not_keep_a_sidecar_from_ending() {
    let sidecar = Setup::new().set("shutdown.drain", "300ms").start().await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let mut calls = in_flight(&sidecar.gate().await, 1).await;
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
    let gate = sidecar.gate().await;
    let calls = in_flight(&gate, 3).await;
    let call = wire::call(&wire::run(), "desk.read", "{}");
    let error = gate.evaluate_within(call.clone(), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.reason.as_deref(), Some("OVERLOADED"), "{error}");
    assert_eq!(error.code, Code::ResourceExhausted);
    assert!(error.may_send_again() && error.message.contains("3 calls"), "{error}");
    drop(hold);
    for answer in calls.join_all().await {
        assert_eq!(answer.unwrap().decision(), v1::Decision::Allow);
    }
    // The very same call, as the message says.
    assert_eq!(gate.evaluate(call).await.unwrap().response().decision(), v1::Decision::Allow);
}

#[tokio::test]
async fn calls_that_come_faster_than_the_rate_are_refused_and_later_ones_are_taken() {
    let sidecar = Setup::new().set("limits.per_second", "2").start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let elements = (0..100).map(|_| wire::element(wire::call(&run, "desk.read", "{}"))).collect();
    let mut refused = 0;
    for answer in crate::stream::answers(&sidecar, elements).await {
        match answer.answer.unwrap() {
            Answer::Response(response) => assert_eq!(response.decision(), v1::Decision::Allow),
            Answer::Error(error) => {
                assert_eq!((error.code, error.reason.as_str()), (i32::from(Code::ResourceExhausted), "RATE_LIMITED"));
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "a hundred calls at once are more than two a second");
    let late = eventually("a call that is taken", async || gate.evaluate(wire::call(&run, "desk.read", "{}")).await.ok()).await;
    assert_eq!(late.response().decision(), v1::Decision::Allow);
    // Health is not a call.
    assert_eq!(sidecar.health("").await, Some(ServingStatus::Serving));
}

#[tokio::test]
async fn h15_a_callers_deadline_cuts_the_call_and_it_is_never_allowed() {
    let port = metrics::free_port();
    let sidecar = Setup::new().set("metrics.listen", &format!("127.0.0.1:{port}")).start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    let hold = Hold::take(&sidecar.setup().journal_path());
    let error = gate.evaluate_within(wire::call(&run, "desk.read", "{}"), Duration::from_millis(250)).await.unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
    assert_eq!(error.reason.as_deref(), Some("JOURNAL_UNAVAILABLE"), "the sidecar answers before the caller gives up");
    // A caller that goes away without a deadline cuts it as well.
    let leaving = gate.evaluate(wire::call(&run, "desk.read", "{}"));
    assert!(tokio::time::timeout(Duration::from_millis(200), leaving).await.is_err());
    // Until the sidecar knows that it is gone, the call may still be decided for it.
    eventually("both calls cut", async || {
        (metrics::value(&metrics::scrape(port).await, "tollgate_undecided_total") == 2).then_some(())
    })
    .await;
    drop(hold);
    // Appends are made in order: after one more, both have landed, if they ever do.
    drop(gate.evaluate(wire::call(&wire::run(), "desk.read", "{}")).await.unwrap());
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
