//! Callers as they come: they send, send again, cancel, hang up, forget to complete and complete twice.

use std::{sync::Arc, time::Duration};

use futures_util::future::join;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
};
use tollgate_domain::{Agent, Call, Claims, Decision, InvocationId, OwnerKind, Reported, RunKey, Runtime, ToolRef};
use turmoil::net::TcpStream;

use crate::{
    hooks::{Act, Script},
    sidecar::PORT,
    world::{Ask, Id, Reply, Told, World},
};

/// Runs that callers share.
const RUNS: [&str; 3] = ["run-1", "run-2", "run-3"];
/// How many tool calls a caller intends.
const INTENTS: u64 = 14;
/// How long a caller waits past the deadline that it gave.
const GRACE: Duration = Duration::from_millis(1_500);
/// What most hooks do with most calls.
const ACTS: [Act; 20] = {
    let mut acts = [Act::Allow; 20];
    (acts[0], acts[1], acts[2]) = (Act::Deny, Act::Deny, Act::Hang);
    (acts[3], acts[4], acts[5]) = (Act::Slow, Act::Slow, Act::Slow);
    (acts[6], acts[7], acts[8]) = (Act::Panic, Act::Fail, Act::Abstain);
    acts
};

pub(crate) fn runs() -> impl Iterator<Item = RunKey> {
    RUNS.into_iter().map(run)
}

fn run(run: &str) -> RunKey {
    RunKey {
        tenant: "acme".parse().unwrap(),
        workspace: "support".parse().unwrap(),
        owner_kind: OwnerKind::Run,
        owner: "desk".parse().unwrap(),
        run: run.parse().unwrap(),
    }
}

/// Somebody who asks, on a host of their own.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) world: Arc<World>,
    pub(crate) sidecars: Arc<[&'static str]>,
}

/// One intended effect.
#[derive(Clone, Copy, Debug)]
struct Intent {
    number: u64,
    run: &'static str,
    script: Script,
    /// Whether its framework has ids of tool calls.
    named: bool,
}

impl Caller {
    pub(crate) async fn run(self) -> turmoil::Result {
        let chance = &self.world.chance;
        let mut intents = JoinSet::new();
        for number in 0..INTENTS {
            let intent = Intent { number, run: chance.pick(&RUNS), script: self.script(), named: !chance.one_in(8) };
            let caller = self.clone();
            intents.spawn(async move { caller.pursue(intent).await });
            chance.pause(0..=300).await;
        }
        while let Some(pursued) = intents.join_next().await {
            pursued?;
        }
        Ok(())
    }

    /// One call to each sidecar, which must decide it: nothing fails any more.
    pub(crate) async fn probe(self) -> turmoil::Result {
        for sidecar in &*self.sidecars {
            let intent = Intent { number: 0, run: RUNS[0], script: Script([Act::Allow; 3]), named: false };
            let call = self.call(intent, Some(self.world.fresh(&self.name)), None);
            let asked = Ask::Evaluate { call: Box::new(call), script: intent.script, timeout: Duration::from_secs(2) };
            let reply = self.send(sidecar, asked, None, Duration::from_secs(3)).await;
            let decided = matches!(reply, Some(Reply::Decided(_)));
            self.world.require(decided, || format!("{sidecar} does not decide although nothing fails: {reply:?}"));
        }
        Ok(())
    }

    fn script(&self) -> Script {
        Script(std::array::from_fn(|_| self.world.chance.pick(&ACTS)))
    }

    fn call(&self, intent: Intent, invocation: Option<InvocationId>, tool_call: Option<&str>) -> Call {
        Call {
            run: run(intent.run),
            agent: Agent { id: self.name.parse().unwrap(), revision: "1".parse().unwrap() },
            tool: ToolRef { id: "mail.send".parse().unwrap(), provider: None, external_name: None },
            principal: None,
            tool_call: tool_call.map(|id| id.parse().unwrap()),
            call_key: Some(format!("{}", intent.number).parse().unwrap()),
            invocation,
            arguments: intent.script.arguments(),
            claims: Claims::default(),
            runtime: Runtime::default(),
        }
    }

    /// Attempts until it is done, or no longer wanted.
    async fn pursue(self, intent: Intent) {
        let chance = &self.world.chance;
        let name = format!("{}-{}", self.name, intent.number);
        for _ in 0..chance.of(1..=4) {
            let invocation = (!chance.one_in(10)).then(|| self.world.fresh(&self.name));
            let call = self.call(intent, invocation, intent.named.then_some(&*name));
            let reply = self.attempt(intent, &call).await;
            match reply {
                Some(Reply::Decided(told)) if told.decision == Decision::Allow => {
                    self.use_pass(intent, &call, &told).await;
                    return;
                }
                Some(Reply::Decided(told)) => self.bear_refusal(intent, &call, &told).await,
                _ if call.invocation.is_some() && chance.one_in(2) => {
                    // Nobody knows how it ended, so the same is asked again.
                    chance.pause(0..=400).await;
                    let reply = self.evaluate(call.clone(), intent.script).await;
                    if let Some(Reply::Decided(told)) = reply
                        && told.decision == Decision::Allow
                    {
                        self.use_pass(intent, &call, &told).await;
                        return;
                    }
                }
                _ => {}
            }
            chance.pause(0..=200).await;
        }
    }

    /// Asks once, or twice at the same time.
    async fn attempt(&self, intent: Intent, call: &Call) -> Option<Reply> {
        let chance = &self.world.chance;
        let first = self.evaluate(call.clone(), intent.script);
        if call.invocation.is_none() || !chance.one_in(3) {
            return first.await;
        }
        let script = if chance.one_in(3) { self.script() } else { intent.script };
        let same = call.tool_call.is_some() || script == intent.script;
        // Without a name, other arguments make another tool call, whose invocation this is not.
        let script = if same { script } else { intent.script };
        let again = Call { arguments: script.arguments(), ..call.clone() };
        let second = async {
            chance.pause(0..=40).await;
            self.evaluate(again, script).await
        };
        let (first, second) = join(first, second).await;
        // Whoever changed the arguments has asked about something else.
        if script == intent.script { first.or(second) } else { first }
    }

    async fn use_pass(&self, intent: Intent, call: &Call, told: &Told) {
        let chance = &self.world.chance;
        let id: Id = (call.run.clone(), told.invocation.clone());
        let again = Call { invocation: Some(told.invocation.clone()), ..call.clone() };
        if chance.one_in(4) {
            chance.pause(0..=100).await;
            self.evaluate(again.clone(), intent.script).await;
        }
        // The tool runs.
        chance.pause(0..=120).await;
        if chance.one_in(6) {
            chance.pause(1_400..=1_700).await;
            self.evaluate(again.clone(), intent.script).await;
        }
        let recorded = match chance.of(0..=9) {
            0 => return,
            1..=6 => self.complete(&id).await,
            7 => self.complete(&id).await | self.complete(&id).await,
            _ => {
                let (first, second) = join(self.complete(&id), self.complete(&id)).await;
                first | second
            }
        };
        if recorded && chance.one_in(3) {
            let reply = self.evaluate(again, intent.script).await;
            let decided = matches!(reply, Some(Reply::Decided(_)));
            self.world.require(!decided, || format!("{} has ended, and is decided again: {reply:?}", told.invocation));
        }
    }

    async fn bear_refusal(&self, intent: Intent, call: &Call, told: &Told) {
        let chance = &self.world.chance;
        let again = Call { invocation: Some(told.invocation.clone()), ..call.clone() };
        if chance.one_in(3) {
            self.evaluate(again.clone(), intent.script).await;
        }
        if chance.one_in(6) {
            let recorded = self.complete(&(call.run.clone(), told.invocation.clone())).await;
            self.world.require(!recorded, || format!("{} was refused, and is completed", told.invocation));
        }
        if intent.named && chance.one_in(6) {
            let tool = ToolRef { id: "mail.delete".parse().unwrap(), ..call.tool.clone() };
            let other = Call { tool, invocation: Some(self.world.fresh(&self.name)), ..call.clone() };
            let reply = self.evaluate(other, intent.script).await;
            let decided = matches!(reply, Some(Reply::Decided(_)));
            self.world.require(!decided, || format!("the tool call of {} names two tools: {reply:?}", told.invocation));
        }
    }

    /// Asks some sidecar, with as much patience as comes.
    async fn evaluate(&self, call: Call, script: Script) -> Option<Reply> {
        let chance = &self.world.chance;
        let timeout = if chance.one_in(4) { chance.millis(1..=60) } else { chance.millis(60..=1_500) };
        let cancel = chance.one_in(7).then(|| chance.millis(0..=80));
        let patience = if chance.one_in(10) { chance.millis(1..=80) } else { timeout + GRACE };
        let to = chance.pick(&self.sidecars);
        self.send(to, Ask::Evaluate { call: Box::new(call), script, timeout }, cancel, patience).await
    }

    /// Reports some outcome, up to three times where nobody says that it is recorded. Whether it is.
    async fn complete(&self, id: &Id) -> bool {
        let chance = &self.world.chance;
        let reported = match chance.of(0..=3) {
            0 => Reported::ProviderFailed { error_type: "Timeout".to_owned(), error_message: String::new() },
            1 => Reported::Cancelled,
            _ => Reported::Succeeded { tool_error: false },
        };
        for _ in 0..3 {
            let timeout = chance.millis(20..=1_000);
            let asked = Ask::Complete { id: id.clone(), reported: reported.clone(), timeout };
            let reply = self.send(chance.pick(&self.sidecars), asked, None, timeout + GRACE).await;
            match reply {
                Some(Reply::Completed) => return true,
                Some(Reply::NotCompleted(tollgate_engine::CompleteError::NotAllowed)) => return false,
                _ => chance.pause(0..=200).await,
            }
        }
        false
    }

    /// Sends a question and waits for its answer; cancels it after `cancel`, hangs up after `patience`.
    async fn send(&self, to: &str, ask: Ask, cancel: Option<Duration>, patience: Duration) -> Option<Reply> {
        let number = self.world.ask(ask);
        self.world.note(|| format!("{} asks {to} {number}, {}", self.name, self.world.asked(number)));
        let exchange = async {
            let stream = TcpStream::connect((to, PORT)).await.ok()?;
            let (mut answer, mut word) = stream.into_split();
            word.write_u64(number as u64).await.ok()?;
            if let Some(cancel) = cancel {
                tokio::select! {
                    biased;
                    answered = answer.read_u8() => {
                        answered.ok()?;
                        return self.world.reply(number);
                    }
                    () = tokio::time::sleep(cancel) => word.write_u8(0).await.ok()?,
                }
            }
            answer.read_u8().await.ok()?;
            self.world.reply(number)
        };
        tokio::time::timeout(patience, exchange).await.ok().flatten()
    }
}
