//! `EvaluateStream`: many attempts over one stream, judged concurrently, answered in any order.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;
use tollgate_domain::{InvocationId, RunKey};
use tollgate_proto::v1::{self, evaluate_stream_request::Element, evaluate_stream_response::Answer};
use tonic::{Status, Streaming};

use crate::{
    governance::Governance,
    status::Problem,
    wire::{
        inbound::{self, InvalidField},
        outbound,
    },
};

/// Most elements of one stream that are in flight or whose answers wait to be taken; further ones wait in
/// the transport's flow control.
const UNANSWERED_MAX_COUNT: usize = 1_024;
/// Answers on their way into the transport.
const SENDING_MAX_COUNT: usize = 16;

type Attempt = (RunKey, InvocationId);
type Answering = Pin<Box<dyn Future<Output = (Attempt, v1::EvaluateStreamResponse)> + Send>>;

/// Answers every element of a stream. Dropping the answers, as a broken stream does, cancels what is
/// in flight; the end of the elements does not.
pub(crate) fn answer(
    governance: Governance,
    elements: Streaming<v1::EvaluateStreamRequest>,
) -> impl Stream<Item = Result<v1::EvaluateStreamResponse, Status>> + Send {
    let (answers, receiver) = mpsc::channel(SENDING_MAX_COUNT);
    let engine = Arc::clone(&governance.engine);
    let session = Session {
        share: governance.admission.share_of_a_stream(),
        governance,
        in_flight: FuturesUnordered::new(),
        outbox: VecDeque::new(),
        cancels: HashMap::new(),
    };
    engine.spawn(session.run(elements, answers));
    ReceiverStream::new(receiver)
}

struct Session {
    governance: Governance,
    /// How many of its elements may be judged at once.
    share: Arc<Semaphore>,
    in_flight: FuturesUnordered<Answering>,
    /// Answers that the client has not taken yet. Kept here, so that a client that reads slowly holds up
    /// nothing but its own next elements.
    outbox: VecDeque<v1::EvaluateStreamResponse>,
    /// For each attempt in flight, how to cancel it, and how many elements of the stream sent it.
    cancels: HashMap<Attempt, (CancellationToken, usize)>,
}

impl Session {
    async fn run(
        mut self,
        mut elements: Streaming<v1::EvaluateStreamRequest>,
        answers: mpsc::Sender<Result<v1::EvaluateStreamResponse, Status>>,
    ) {
        let draining = self.governance.engine.draining();
        let (mut more, mut takes) = (true, true);
        while more && takes || !self.in_flight.is_empty() || !self.outbox.is_empty() {
            let has_room = self.in_flight.len() + self.outbox.len() < UNANSWERED_MAX_COUNT;
            tokio::select! {
                place = answers.reserve(), if !self.outbox.is_empty() => match (place, self.outbox.pop_front()) {
                    (Ok(place), Some(response)) => place.send(Ok(response)),
                    (Ok(_), None) => {}
                    (Err(_), _) => return,
                },
                () = answers.closed() => return,
                // What is in flight can still be cancelled; what comes is refused by the engine.
                () = draining.cancelled(), if takes => takes = false,
                Some((attempt, response)) = self.in_flight.next() => {
                    self.landed(&attempt);
                    self.outbox.push_back(response);
                }
                element = elements.message(), if more && has_room => match element {
                    Ok(Some(element)) => self.take(element),
                    Ok(None) => more = false,
                    // Broken: nobody will read an answer, so that nothing may be allowed any more.
                    Err(_) => return,
                },
            }
        }
    }

    fn take(&mut self, element: v1::EvaluateStreamRequest) {
        match element.element {
            Some(Element::Evaluate(evaluate)) => self.evaluate(evaluate),
            Some(Element::Cancel(cancel)) => self.cancel(&cancel),
            None => self.answer_at_once(None, String::new(), missing("element")),
        }
    }

    fn evaluate(&mut self, evaluate: v1::StreamEvaluate) {
        let Some(request) = evaluate.request else {
            return self.answer_at_once(None, String::new(), missing("evaluate.request"));
        };
        let (run, invocation_id) = (request.run.clone(), request.invocation_id.clone());
        let checked = inbound::run(run.clone()).and_then(|run| {
            let invocation = inbound::required("invocation_id", &invocation_id, str::parse::<InvocationId>)?;
            Ok(((run, invocation), inbound::timeout(evaluate.timeout)?))
        });
        match checked {
            Err(field) => self.answer_at_once(run, invocation_id, field),
            Ok((attempt, timeout)) => self.start(attempt, request, timeout),
        }
    }

    fn start(&mut self, attempt: Attempt, request: v1::EvaluateRequest, timeout: Option<Duration>) {
        let (cancel, count) = self.cancels.entry(attempt.clone()).or_insert_with(|| (CancellationToken::new(), 0));
        *count += 1;
        let cancel = cancel.clone();
        let (governance, share) = (self.governance.clone(), Arc::clone(&self.share));
        self.in_flight.push(Box::pin(async move {
            let answer = match governance.judge_element(request, timeout, &share, &cancel).await {
                Ok(response) => Answer::Response(response),
                Err(problem) => Answer::Error(problem.into_stream_error()),
            };
            let response = v1::EvaluateStreamResponse {
                invocation_id: attempt.1.to_string(),
                run: Some(outbound::run(&attempt.0)),
                answer: Some(answer),
            };
            (attempt, response)
        }));
    }

    fn cancel(&mut self, cancel: &v1::StreamCancel) {
        let invocation = inbound::required("cancel.invocation_id", &cancel.invocation_id, str::parse::<InvocationId>);
        match inbound::run(cancel.run.clone()).and_then(|run| Ok((run, invocation?))) {
            Err(field) => self.answer_at_once(cancel.run.clone(), cancel.invocation_id.clone(), field),
            Ok(attempt) => {
                if let Some((token, _)) = self.cancels.get(&attempt) {
                    token.cancel();
                }
            }
        }
    }

    fn landed(&mut self, attempt: &Attempt) {
        if let Some((_, count)) = self.cancels.get_mut(attempt) {
            *count -= 1;
            if *count == 0 {
                self.cancels.remove(attempt);
            }
        }
    }

    fn answer_at_once(&mut self, run: Option<v1::RunKey>, invocation_id: String, field: InvalidField) {
        let answer = Some(Answer::Error(Problem::from(field).into_stream_error()));
        self.outbox.push_back(v1::EvaluateStreamResponse { invocation_id, run, answer });
    }
}

fn missing(field: &'static str) -> InvalidField {
    InvalidField { field, problem: "is required".to_owned() }
}
