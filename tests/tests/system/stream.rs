//! `EvaluateStream`: many attempts in flight over one stream, each with an answer of its own.

use std::collections::{HashMap, HashSet};

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tollgate_client::v1::{self, evaluate_stream_response::Answer, governance_service_client::GovernanceServiceClient};
use tollgate_domain::FactKind;
use tollgate_tests::{
    journal_file::{self, Hold},
    sidecar::{Setup, Sidecar, eventually},
    wire,
};
use tonic::{Code, Streaming, transport::Channel};

/// A stream with its two ends.
struct Duplex {
    elements: mpsc::Sender<v1::EvaluateStreamRequest>,
    answers: Streaming<v1::EvaluateStreamResponse>,
}

impl Duplex {
    async fn open(sidecar: &Sidecar) -> Self {
        let (elements, receiver) = mpsc::channel(4);
        let answers = sidecar.gate().await.raw().evaluate_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        Self { elements, answers }
    }

    async fn send(&self, element: v1::EvaluateStreamRequest) {
        self.elements.send(element).await.unwrap();
    }

    async fn next(&mut self) -> v1::EvaluateStreamResponse {
        self.answers.next().await.expect("another answer").unwrap()
    }

    /// Closes the client's side, and reads to the end.
    async fn finish(self) -> Vec<v1::EvaluateStreamResponse> {
        drop(self.elements);
        self.answers.map(Result::unwrap).collect().await
    }
}

/// Sends elements, closes, and answers everything that comes back.
pub(crate) async fn answers(sidecar: &Sidecar, elements: Vec<v1::EvaluateStreamRequest>) -> Vec<v1::EvaluateStreamResponse> {
    answers_of(sidecar.gate().await.raw(), elements).await
}

/// As [`answers`], over any client.
pub(crate) async fn answers_of(
    mut client: GovernanceServiceClient<Channel>,
    elements: Vec<v1::EvaluateStreamRequest>,
) -> Vec<v1::EvaluateStreamResponse> {
    let answers = client.evaluate_stream(tokio_stream::iter(elements)).await.unwrap().into_inner();
    answers.map(Result::unwrap).collect().await
}

fn response(answer: v1::EvaluateStreamResponse) -> v1::EvaluateResponse {
    match answer.answer.unwrap() {
        Answer::Response(response) => response,
        Answer::Error(error) => panic!("no decision: {error:?}"),
    }
}

fn error(answer: v1::EvaluateStreamResponse) -> v1::StreamError {
    match answer.answer.unwrap() {
        Answer::Error(error) => error,
        Answer::Response(response) => panic!("a decision: {response:?}"),
    }
}

/// The kinds of facts of an invocation, once it has ended or nothing moves it any more.
async fn life(sidecar: &Sidecar, run: &v1::RunKey, invocation: &str) -> Vec<FactKind> {
    let facts = journal_file::facts(&sidecar.setup().journal_path(), &journal_file::history(run)).await;
    let own = facts.iter().filter(|stored| stored.invocation.as_ref().is_some_and(|id| id.as_str() == invocation));
    own.map(|stored| stored.fact.kind()).collect()
}

#[tokio::test]
async fn many_elements_are_in_flight_and_their_answers_are_matched_by_invocation() {
    let sidecar = Setup::new().start().await;
    let runs = [wire::run(), wire::run()];
    let mut asked = HashMap::new();
    let mut elements = Vec::new();
    for number in 0..300 {
        let tool = if number % 3 == 0 { "desk.write" } else { "desk.read" };
        let mut call = wire::call(&runs[number % 2], tool, "{}");
        // The same invocation ids in both runs: those of two runs have nothing to do with each other.
        call.invocation_id = format!("invocation-{}", number / 2);
        asked.insert((call.run.clone().unwrap().run_id, call.invocation_id.clone()), tool);
        elements.push(wire::element(call));
    }
    let answers = answers(&sidecar, elements).await;
    assert_eq!(answers.len(), 300);
    let mut seen = HashSet::new();
    for answer in answers {
        let key = (answer.run.clone().unwrap().run_id, answer.invocation_id.clone());
        let response = response(answer);
        assert_eq!(response.invocation_id, key.1);
        let expected = if asked[&key] == "desk.read" { v1::Decision::Allow } else { v1::Decision::Deny };
        assert_eq!(response.decision(), expected);
        assert!(seen.insert(key), "one answer each");
    }
}

#[tokio::test]
async fn an_element_is_answered_before_the_next_is_sent_and_closing_lets_the_rest_finish() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let mut stream = Duplex::open(&sidecar).await;
    stream.send(wire::element(wire::call(&run, "desk.read", "{}"))).await;
    assert_eq!(response(stream.next().await).decision(), v1::Decision::Allow);

    let hold = Hold::take(&sidecar.setup().journal_path());
    for _ in 0..5 {
        stream.send(wire::element(wire::call(&run, "desk.read", "{}"))).await;
    }
    let release = async {
        // The last element is on its way when the one before it was taken from the channel.
        tokio::task::yield_now().await;
        drop(hold);
    };
    let (rest, ()) = tokio::join!(stream.finish(), release);
    assert_eq!(rest.len(), 5, "what was in flight when the client closed its side is answered");
    for answer in rest {
        assert_eq!(response(answer).decision(), v1::Decision::Allow);
    }
}

#[tokio::test]
async fn h15_an_element_has_a_time_limit_of_its_own_and_is_never_allowed_after_it() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let mut stream = Duplex::open(&sidecar).await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let (short, long) = (wire::call(&run, "desk.read", "{}"), wire::call(&run, "desk.read", "{}"));
    stream.send(wire::timed_element(long.clone(), Some(20_000))).await;
    stream.send(wire::timed_element(short.clone(), Some(150))).await;
    let first = stream.next().await;
    assert_eq!(first.invocation_id, short.invocation_id, "only its own limit cuts an element");
    let refused = error(first);
    assert_eq!((refused.code, refused.reason.as_str()), (i32::from(Code::DeadlineExceeded), "JOURNAL_UNAVAILABLE"));
    drop(hold);
    assert_eq!(response(stream.next().await).invocation_id, long.invocation_id);
    // Should it have become durable as ALLOW after all, it is closed: nobody was given it.
    closed_or_absent(&sidecar, &run, &short.invocation_id).await;
}

/// An untold decision is not on record, or closed as cancelled.
async fn closed_or_absent(sidecar: &Sidecar, run: &v1::RunKey, invocation: &str) {
    // Appends are made in order: after one more, it has landed, if it ever does.
    drop(sidecar.gate().await.evaluate(wire::call(&wire::run(), "desk.read", "{}")).await.unwrap());
    eventually("no open decision", async || {
        let life = life(sidecar, run, invocation).await;
        matches!(life.as_slice(), [] | [.., FactKind::ToolCallCancelled]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn h15_a_cancelled_element_is_answered_and_never_allowed() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let mut stream = Duplex::open(&sidecar).await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let (cancelled, other) = (wire::call(&run, "desk.read", "{}"), wire::call(&run, "desk.read", "{}"));
    stream.send(wire::element(cancelled.clone())).await;
    stream.send(wire::element(other.clone())).await;
    stream.send(wire::cancel(&run, &cancelled.invocation_id)).await;
    let answer = stream.next().await;
    assert_eq!(answer.invocation_id, cancelled.invocation_id);
    match answer.answer.unwrap() {
        Answer::Response(response) => assert_eq!(response.decision(), v1::Decision::Failed),
        Answer::Error(error) => assert_eq!(error.reason, "JOURNAL_UNAVAILABLE"),
    }
    drop(hold);
    assert_eq!(response(stream.next().await).invocation_id, other.invocation_id);
    closed_or_absent(&sidecar, &run, &cancelled.invocation_id).await;
    assert!(stream.finish().await.is_empty());
}

#[tokio::test]
async fn h15_a_broken_stream_cancels_what_is_in_flight() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let stream = Duplex::open(&sidecar).await;
    let hold = Hold::take(&sidecar.setup().journal_path());
    let calls: Vec<_> = (0..6).map(|_| wire::call(&run, "desk.read", "{}")).collect();
    for call in &calls {
        stream.send(wire::element(call.clone())).await;
    }
    // Everything has arrived when a call that was sent after it is seen to wait as well.
    let late = wire::timed_element(wire::call(&run, "desk.read", "{}"), Some(100));
    stream.send(late).await;
    let mut stream = stream;
    drop(error(stream.next().await));
    drop(stream);
    let status = sidecar.health("tollgate.liveness").await;
    assert!(status.is_some());
    drop(hold);
    for call in &calls {
        closed_or_absent(&sidecar, &run, &call.invocation_id).await;
    }
    let mut gate = sidecar.gate().await.raw();
    let answer = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap().into_inner();
    assert_eq!(answer.decision(), v1::Decision::Allow, "the sidecar serves on");
    for call in calls {
        let repeated = gate.evaluate(call).await;
        assert!(!repeated.is_ok_and(|answer| answer.into_inner().repeat), "an untold decision is never repeated as ALLOW");
    }
}

#[tokio::test]
async fn elements_over_the_limit_of_calls_in_flight_wait_for_their_place() {
    let sidecar = Setup::new().set("limits.in_flight", "2").start().await;
    let run = wire::run();
    let elements = (0..50).map(|_| wire::element(wire::call(&run, "desk.read", "{}"))).collect();
    let answers = answers(&sidecar, elements).await;
    assert_eq!(answers.len(), 50);
    assert!(answers.into_iter().all(|answer| response(answer).decision() == v1::Decision::Allow));
}

#[tokio::test]
async fn a_long_fast_stream_is_held_up_by_flow_control_and_its_connection_lives() {
    let sidecar = Setup::new().start().await;
    let run = wire::run();
    let elements: Vec<_> = (0..10_000).map(|_| wire::element(wire::call(&run, "desk.read", "{}"))).collect();
    let answers = answers(&sidecar, elements).await;
    assert_eq!(answers.len(), 10_000);
    assert!(answers.into_iter().all(|answer| response(answer).decision() == v1::Decision::Allow));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answers_holds_up_nobody_else() {
    let sidecar = Setup::new().set("limits.in_flight", "8").start().await;
    let run = wire::run();
    let silent = Duplex::open(&sidecar).await;
    let call = |note: &str| wire::element(wire::call(&run, "desk.read", &format!("{{\"note\": \"{note}\"}}")));
    // Until flow control holds the sender up: the sidecar takes no more of this stream.
    let note = "n".repeat(4_096);
    while tokio::time::timeout(std::time::Duration::from_secs(1), silent.send(call(&note))).await.is_ok() {}
    let gate = sidecar.gate().await;
    for _ in 0..20 {
        let answer = gate.evaluate(wire::call(&run, "desk.read", "{}")).await.unwrap();
        assert_eq!(answer.response().decision(), v1::Decision::Allow);
    }
    drop(silent);
}
