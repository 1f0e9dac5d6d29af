//! Group commit: many callers, one writer, one transaction per batch.
//!
//! A caller puts its entry into a bounded queue and waits. The writer takes what is there, checks
//! each entry against the record and the entries before it, commits all that may follow in one
//! transaction, and only then answers. While the store fails it refuses at once, and heals itself.
//!
//! The writer is a future of its own, to be run where its backend may wait for the disk. Beside it, on the callers'
//! runtime, one task hands its answers out: a batch wakes that runtime once, not once for each caller.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot, watch};
use tollgate_domain::{
    AppendError, Entry, GenerationNumbers, History, InvocationId, Lookup, NumberRequest, Receipt, RunKey, StoreHealth,
    ToolCallId, Unavailable, UnavailableCause,
};

use crate::{
    backend::Backend,
    ledger::{Batch, Counters, Known, Ledger, Prepared},
};

/// Most entries of one batch.
const BATCH_MAX_COUNT: usize = 1_024;
/// From how many bytes of facts on a batch takes no more: large ones must not hold up the small behind them for long.
const BATCH_FULL_BYTES: usize = 1_048_576;
/// How long a failing store waits before it first tries to heal.
const HEAL_FIRST_WAIT: Duration = Duration::from_millis(100);
/// How long it waits at most between tries.
const HEAL_MAX_WAIT: Duration = Duration::from_secs(2);

/// The callers' side.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    queue: mpsc::Sender<Command>,
    ledger: Arc<Mutex<Ledger>>,
    health: watch::Receiver<StoreHealth>,
    closed: watch::Receiver<bool>,
}

enum Command {
    Append(Append),
    Number(Box<NumberRequest>, oneshot::Sender<Result<GenerationNumbers, Unavailable>>),
    Close,
}

struct Append {
    prepared: Prepared,
    ack: Ack,
}

type Ack = oneshot::Sender<Result<Receipt, AppendError>>;
/// What the callers of a batch are told, in the order in which they came.
type Answers = Vec<(Ack, Result<Receipt, AppendError>)>;

impl Command {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.prepared.bodies.iter().map(Vec::len).sum(),
            Self::Number(..) | Self::Close => 0,
        }
    }
}

impl GroupCommit {
    /// The callers' side, which must be made on their runtime, and the writer, which ends after [`GroupCommit::close`].
    /// At most `max_queue` entries may wait.
    pub(crate) fn new<B: Backend>(backend: B, next: Counters, max_queue: usize) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, commands) = mpsc::channel(max_queue.max(1));
        let (answers, answered) = mpsc::unbounded_channel();
        let (health_in, health) = watch::channel(StoreHealth::Serving);
        let (closed_in, closed) = watch::channel(false);
        let ledger = Arc::new(Mutex::new(Ledger::new(next)));
        let writer = Writer { backend, ledger: Arc::clone(&ledger), commands, answers, health: health_in };
        #[expect(clippy::disallowed_methods, reason = "the one task that answers; close() waits for its end")]
        let _detached = tokio::spawn(acknowledge(answered, ClosedAtEnd(closed_in)));
        (Self { queue, ledger, health, closed }, writer.run())
    }

    /// See [`tollgate_domain::Store::append`].
    pub(crate) async fn append(&self, entry: Entry) -> Result<Receipt, AppendError> {
        self.health().check()?;
        let prepared = Prepared::new(entry)?;
        let (ack, answer) = oneshot::channel();
        self.queue.try_send(Command::Append(Append { prepared, ack })).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unavailable::refused(UnavailableCause::Overloaded),
            mpsc::error::TrySendError::Closed(_) => Unavailable::refused(UnavailableCause::Closed),
        })?;
        // The writer ended within the batch, by a panic or with its runtime: what it wrote may be durable.
        answer.await.unwrap_or(Err(Unavailable::unknown(UnavailableCause::Closed).into()))
    }

    /// See [`tollgate_domain::Store::number`].
    pub(crate) async fn number(&self, request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        self.health().check()?;
        let (ack, answer) = oneshot::channel();
        let sent = self.queue.send(Command::Number(Box::new(request), ack)).await;
        sent.map_err(|_| Unavailable::refused(UnavailableCause::Closed))?;
        answer.await.unwrap_or(Err(Unavailable::unknown(UnavailableCause::Closed)))
    }

    /// See [`tollgate_domain::Store::lookup`]. What the ledger cannot tell is read from the store: `read` is told whether
    /// nothing is known of the run, so that all of it is worth reading.
    pub(crate) async fn lookup<R>(
        &self,
        run: &RunKey,
        tool_call: &ToolCallId,
        invocation: &InvocationId,
        read: impl FnOnce(bool) -> R,
    ) -> Result<Lookup, Unavailable>
    where
        R: Future<Output = Result<(Lookup, Option<Known>), Unavailable>>,
    {
        let history = History::Run(run.clone());
        // Locked for a moment only: the writer needs it for every batch.
        let unknown = match lock(&self.ledger).lookup(&history, tool_call, invocation) {
            Ok(lookup) => return Ok(lookup),
            Err(unknown) => unknown,
        };
        let (lookup, known) = read(unknown.history).await?;
        if let Some(known) = known {
            lock(&self.ledger).remember(unknown, history, known);
        }
        Ok(lookup)
    }

    /// See [`tollgate_domain::Store::health`].
    pub(crate) fn health(&self) -> StoreHealth {
        *self.health.borrow()
    }

    /// See [`tollgate_domain::Store::health_changed`].
    pub(crate) async fn health_changed(&self, seen: StoreHealth) -> StoreHealth {
        let mut health = self.health.clone();
        let closed = StoreHealth::Failing(UnavailableCause::Closed);
        // An error is the end of the writer.
        let now = health.wait_for(|now| *now != seen).await.map_or(closed, |now| *now);
        if now == seen { std::future::pending().await } else { now }
    }

    /// See [`tollgate_domain::Store::close`].
    pub(crate) async fn close(&self) {
        // Where the queue is closed already, another close is under way or done.
        drop(self.queue.send(Command::Close).await);
        drop(self.closed.clone().wait_for(|closed| *closed).await);
    }
}

/// Hands out answers until the writer is gone.
async fn acknowledge(mut answered: mpsc::UnboundedReceiver<Answers>, _closed: ClosedAtEnd) {
    while let Some(answers) = answered.recv().await {
        for (ack, answer) in answers {
            // Whoever gave up waiting in the meantime is not told.
            drop(ack.send(answer));
        }
    }
}

/// Tells the callers' side that the writer is gone and everybody answered, however it went.
struct ClosedAtEnd(watch::Sender<bool>);

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

struct Writer<B> {
    backend: B,
    ledger: Arc<Mutex<Ledger>>,
    commands: mpsc::Receiver<Command>,
    /// Never more than were in the queue.
    answers: mpsc::UnboundedSender<Answers>,
    health: watch::Sender<StoreHealth>,
}

/// However the writer ends, nothing is written any more.
impl<B> Drop for Writer<B> {
    fn drop(&mut self) {
        self.health.send_replace(StoreHealth::Failing(UnavailableCause::Closed));
    }
}

impl<B: Backend> Writer<B> {
    async fn run(mut self) {
        let mut commands = Vec::new();
        while self.gather(&mut commands).await {
            let mut appends = Vec::with_capacity(commands.len());
            let mut numbers = Vec::new();
            for command in commands.drain(..) {
                match command {
                    Command::Append(append) => appends.push(append),
                    Command::Number(request, ack) => numbers.push((request, ack)),
                    // What was queued before is still taken, and nothing after.
                    Command::Close => self.commands.close(),
                }
            }
            self.write(appends).await;
            for (request, ack) in numbers {
                self.number(&request, ack).await;
            }
        }
        self.backend.close().await;
    }

    /// Takes what waits; false when the queue is closed and empty. Nobody is held up for a larger batch: while one is
    /// committed, the next gathers by itself.
    async fn gather(&mut self, commands: &mut Vec<Command>) -> bool {
        let Some(first) = self.commands.recv().await else { return false };
        let mut bytes = first.bytes();
        commands.push(first);
        while commands.len() < BATCH_MAX_COUNT && bytes < BATCH_FULL_BYTES {
            let Ok(command) = self.commands.try_recv() else { break };
            bytes += command.bytes();
            commands.push(command);
        }
        true
    }

    async fn write(&mut self, mut appends: Vec<Append>) {
        appends.retain(|append| !append.ack.is_closed());
        let wanted = lock(&self.ledger).wanted(appends.iter().map(|append| &append.prepared.entry));
        if !wanted.is_empty() {
            match self.backend.load(&wanted).await {
                Ok(found) => {
                    let mut ledger = lock(&self.ledger);
                    wanted.into_iter().zip(found).for_each(|(wanted, found)| ledger.learn(wanted, found));
                }
                Err(cause) => {
                    let acks = appends.into_iter().map(|append| append.ack).collect();
                    return self.fail(acks, Unavailable::refused(cause)).await;
                }
            }
        }
        let mut batch = Batch::default();
        let mut answers = Vec::with_capacity(appends.len());
        for Append { prepared, ack } in appends {
            // Locked for one entry at a time: those who look a call up are answering others.
            let answer = lock(&self.ledger).append(prepared, &mut batch);
            answers.push((ack, answer.map_err(AppendError::Conflict)));
        }
        if !batch.is_empty()
            && let Err(unavailable) = self.backend.commit(batch).await
        {
            // A conflict may have been with an entry of this very batch, so it is no answer any more.
            return self.fail(answers.into_iter().map(|(ack, _)| ack).collect(), unavailable).await;
        }
        lock(&self.ledger).settle();
        self.answer(answers);
    }

    fn answer(&self, answers: Answers) {
        // Without anybody to hand them out, the callers' runtime has ended.
        drop(self.answers.send(answers));
    }

    fn refuse(&self, acks: impl IntoIterator<Item = Ack>, unavailable: Unavailable) {
        self.answer(acks.into_iter().map(|ack| (ack, Err(unavailable.into()))).collect());
    }

    async fn number(&mut self, request: &NumberRequest, ack: oneshot::Sender<Result<GenerationNumbers, Unavailable>>) {
        let health = *self.health.borrow();
        if let Err(refused) = health.check() {
            drop(ack.send(Err(refused)));
            return;
        }
        let answer = self.backend.number(request).await;
        let failure = answer.as_ref().err().copied();
        drop(ack.send(answer));
        if let Some(unavailable) = failure {
            self.fail(Vec::new(), unavailable).await;
        }
    }

    /// Answers a batch that failed, and refuses whatever comes until the store can write again.
    async fn fail(&mut self, acks: Vec<Ack>, unavailable: Unavailable) {
        self.health.send_replace(StoreHealth::Failing(unavailable.cause));
        self.refuse(acks, unavailable);
        let mut wait = HEAL_FIRST_WAIT;
        while self.refuse_for(wait).await {
            match self.backend.heal().await {
                Ok(next) => {
                    lock(&self.ledger).reset(next);
                    self.health.send_replace(StoreHealth::Serving);
                    return;
                }
                Err(cause) => {
                    self.health.send_replace(StoreHealth::Failing(cause));
                    wait = (wait * 2).min(HEAL_MAX_WAIT);
                }
            }
        }
    }

    /// Refuses everything for a while; false when the queue was closed, so that there is nothing to heal for.
    async fn refuse_for(&mut self, wait: Duration) -> bool {
        let mut pause = pin!(tokio::time::sleep(wait));
        loop {
            let command = tokio::select! {
                biased;
                () = &mut pause => return true,
                command = self.commands.recv() => command,
            };
            let Err(refused) = self.health.borrow().check() else { return true };
            match command {
                Some(Command::Append(append)) => self.refuse([append.ack], refused),
                Some(Command::Number(_, ack)) => drop(ack.send(Err(refused))),
                Some(Command::Close) => self.commands.close(),
                None => return false,
            }
        }
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A panic while it was held would have been in the rules of an append, and ended the writer.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
