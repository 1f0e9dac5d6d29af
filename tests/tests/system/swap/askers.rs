//! Clients that ask until told to stop, and keep of each answer what can be held against the journal.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use futures_util::StreamExt as _;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tollgate_client::{
    Gate,
    v1::{self, evaluate_stream_response::Answer},
};
use tollgate_tests::{sidecar::Sidecar, wire};

use super::rivals::Rival;

/// Clients with one call at a time.
const UNARY: usize = 6;
/// Clients with a stream.
const STREAMS: usize = 4;
/// Elements that a stream has in flight.
const PIPELINED: usize = 16;
/// Calls of one run, so that a run's history can be held in memory.
const CALLS_OF_A_RUN: usize = 500;

/// What all clients share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The generation that the status has told of.
    pub(super) visible: AtomicU64,
    /// How many answers came.
    pub(super) answers: AtomicUsize,
    stop: CancellationToken,
}

/// A decision as it was told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) invocation: String,
    pub(super) rival: Rival,
    pub(super) generation: Arc<v1::GenerationRef>,
    /// What was visible before the call was sent.
    pub(super) visible: u64,
}

/// What a client was told.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By run.
    pub(super) told: Vec<(v1::RunKey, Vec<Told>)>,
    /// What neither bundle says.
    pub(super) spurious: Vec<String>,
}

/// Clients at work.
pub(super) struct Askers {
    clients: JoinSet<Answers>,
    pub(super) shared: Arc<Shared>,
}

impl Askers {
    pub(super) async fn start(sidecar: &Sidecar, visible: u64) -> Self {
        let mut askers = Self { clients: JoinSet::new(), shared: Arc::default() };
        askers.shared.visible.store(visible, Ordering::SeqCst);
        for number in 0..UNARY + STREAMS {
            let client = Client {
                gate: sidecar.gate().await,
                shared: Arc::clone(&askers.shared),
                answers: Answers::default(),
                generation: Arc::default(),
            };
            if number < UNARY {
                askers.clients.spawn(client.ask());
            } else {
                askers.clients.spawn(client.stream());
            }
        }
        askers
    }

    pub(super) fn answers(&self) -> usize {
        self.shared.answers.load(Ordering::Relaxed)
    }

    /// What all of them were told, once what is in flight has ended.
    pub(super) async fn stop(self) -> Answers {
        self.shared.stop.cancel();
        let mut all = Answers::default();
        for answers in self.clients.join_all().await {
            all.told.extend(answers.told);
            all.spurious.extend(answers.spurious);
        }
        all
    }
}

struct Client {
    gate: Gate,
    shared: Arc<Shared>,
    answers: Answers,
    /// The last that was told, which most answers share.
    generation: Arc<v1::GenerationRef>,
}

impl Client {
    async fn ask(mut self) -> Answers {
        while !self.shared.stop.is_cancelled() {
            let run = self.begin();
            for _ in 0..CALLS_OF_A_RUN {
                if self.shared.stop.is_cancelled() {
                    break;
                }
                let visible = self.shared.visible.load(Ordering::SeqCst);
                match self.gate.raw().evaluate(wire::call(&run, "desk.read", "{}")).await {
                    Ok(answer) => self.told(answer.into_inner(), visible),
                    Err(status) => self.answers.spurious.push(status.to_string()),
                }
            }
        }
        self.answers
    }

    async fn stream(mut self) -> Answers {
        while !self.shared.stop.is_cancelled() {
            let run = self.begin();
            let (elements, receiver) = mpsc::channel(PIPELINED);
            let mut stream = self.gate.raw().evaluate_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
            let mut in_flight = HashMap::new();
            let mut left = CALLS_OF_A_RUN;
            loop {
                while in_flight.len() < PIPELINED && left > 0 && !self.shared.stop.is_cancelled() {
                    let call = wire::call(&run, "desk.read", "{}");
                    in_flight.insert(call.invocation_id.clone(), self.shared.visible.load(Ordering::SeqCst));
                    elements.send(wire::element(call)).await.unwrap();
                    left -= 1;
                }
                if in_flight.is_empty() {
                    break;
                }
                let element = stream.next().await.expect("the stream lives").unwrap();
                let visible = in_flight.remove(&element.invocation_id).expect("it was asked");
                match element.answer.unwrap() {
                    Answer::Response(answer) => self.told(answer, visible),
                    Answer::Error(error) => self.answers.spurious.push(format!("{error:?}")),
                }
            }
        }
        self.answers
    }

    fn begin(&mut self) -> v1::RunKey {
        let run = wire::run();
        self.answers.told.push((run.clone(), Vec::with_capacity(CALLS_OF_A_RUN)));
        run
    }

    fn told(&mut self, answer: v1::EvaluateResponse, visible: u64) {
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        let (Some(rival), Some(generation)) = (Rival::of(&answer), &answer.generation) else {
            self.answers.spurious.push(format!("{answer:?}"));
            return;
        };
        if *generation != *self.generation {
            self.generation = Arc::new(generation.clone());
        }
        let told = Told { invocation: answer.invocation_id, rival, generation: Arc::clone(&self.generation), visible };
        self.answers.told.last_mut().unwrap().1.push(told);
    }
}
