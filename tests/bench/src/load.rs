//! Load in a closed loop: callers that wait for their answer before they ask again, one call each or over streams.

use std::{
    cell::RefCell,
    collections::HashMap,
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tollgate_client::v1::{
    EvaluateStreamRequest, StreamEvaluate, evaluate_stream_request::Element, evaluate_stream_response::Answer,
    governance_service_client::GovernanceServiceClient,
};
use tonic::transport::Channel;

use crate::{calls::Calls, machine::Used};

/// What is asked before a slice begins, so that it begins in the middle of the load.
const WARM_UP: Duration = Duration::from_millis(100);

/// What one slice of load showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The server's CPU time for one answer.
    pub(crate) server_us: f64,
    /// The share of all cores that others took meanwhile.
    pub(crate) foreign: f64,
}

/// The times of the answers of a slice, as they came.
#[derive(Debug, Default)]
pub(crate) struct Log(RefCell<Vec<Duration>>);

impl Log {
    pub(crate) fn answered(&self, asked: Instant) {
        self.0.borrow_mut().push(asked.elapsed());
    }
}

/// Drives load for a while and tells of its middle. The server is the processes that answer.
pub(crate) async fn slice(server: &[u32], length: Duration, drive: impl AsyncFnOnce(&Log, Instant)) -> Sample {
    let log = Log::default();
    let until = Instant::now() + WARM_UP + length;
    let mark = || (Instant::now(), Used::now(server), log.0.borrow().len());
    let watched = async {
        tokio::time::sleep(WARM_UP).await;
        let begun = mark();
        tokio::time::sleep_until(until.into()).await;
        (begun, mark())
    };
    let (((begun, used_before, first), (ended, used, last)), ()) = join(watched, drive(&log, until)).await;
    let elapsed = ended - begun;
    let mut times = log.0.borrow()[first..last].to_vec();
    assert!(!times.is_empty(), "nothing was answered");
    times.sort_unstable();
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    let count = times.len() as f64;
    Sample {
        per_second: count / elapsed.as_secs_f64(),
        p50_us: micros(times[times.len() / 2]),
        p99_us: micros(times[times.len() * 99 / 100]),
        server_us: micros(used.server.saturating_sub(used_before.server)) / count,
        foreign: used.foreign_since(&used_before, elapsed),
    }
}

/// Callers that ask one call each, spread over the connections.
pub(crate) async fn unary(connections: &[Channel], callers: usize, calls: &Calls, log: &Log, until: Instant) {
    let callers = (0..callers).map(async |number| {
        let mut client = GovernanceServiceClient::new(connections[number % connections.len()].clone());
        while Instant::now() < until {
            let call = calls.next();
            let asked = Instant::now();
            let answer = client.evaluate(call.request).await.unwrap().into_inner();
            log.answered(asked);
            calls.check(&answer, call.expected);
        }
    });
    join_all(callers).await;
}

/// One stream on each connection, which together always have so many elements unanswered.
pub(crate) async fn streamed(connections: &[Channel], window: usize, calls: &Calls, log: &Log, until: Instant) {
    let window = window / connections.len();
    join_all(connections.iter().map(|connection| stream(connection, window, calls, log, until))).await;
}

async fn stream(connection: &Channel, window: usize, calls: &Calls, log: &Log, until: Instant) {
    let (elements, receiver) = mpsc::channel(window);
    let mut client = GovernanceServiceClient::new(connection.clone());
    let mut unanswered = HashMap::new();
    let ask = async || {
        let call = calls.next();
        let asked = (call.request.invocation_id.clone(), (Instant::now(), call.expected));
        let evaluate = StreamEvaluate { request: Some(call.request), timeout: None };
        let element = Some(Element::Evaluate(evaluate));
        elements.send(EvaluateStreamRequest { element }).await.unwrap();
        asked
    };
    for _ in 0..window {
        unanswered.extend([ask().await]);
    }
    let mut answers = client.evaluate_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    while !unanswered.is_empty() {
        let answer = answers.message().await.unwrap().expect("every element is answered");
        let (asked, expected) = unanswered.remove(&answer.invocation_id).expect("an answer to what was asked");
        log.answered(asked);
        let Some(Answer::Response(response)) = answer.answer else { panic!("no decision: {:?}", answer.answer) };
        calls.check(&response, expected);
        if Instant::now() < until {
            unanswered.extend([ask().await]);
        }
    }
}
