//! Answers come out of the record: a new one only once it is durable, an old one only to its own call.

use std::fmt::Write as _;

use async_trait::async_trait;
use tollgate_domain::{
    AppendError, AttemptIds, BundleName, CallRecord, Chains, Comparison, Decision, DecisionRules, Entry, Evaluated, FailureKind,
    GenerationNumbers, IdentityKey, InvocationId, InvocationKey, InvocationRecord, InvocationState, Judgement, LastActivated,
    Lookup, Message, NumberRequest, Outcome, Recalled, Receipt, Received, Recorded, RunKey, SidecarId, Started, Store,
    StoreHealth, Terminal, Timestamp, ToolCallId, Unavailable, UnavailableCause, VerdictKind, WhenNoHookMatches, recall, record,
};

use crate::sample::{bundle, call, entry, evaluated, started};

const RECEIPT: Receipt = Receipt { sequence: 5, position: 50, attempt: 2 };

fn ids() -> AttemptIds {
    AttemptIds { tool_call: "call-1".parse().unwrap(), invocation: "i-1".parse().unwrap() }
}

/// A record of what a run may hold; decisions are valid until 10,000.
fn recorded(state: InvocationState, evaluated: Option<Evaluated>) -> InvocationRecord {
    let governed = match state {
        InvocationState::Completed => Some(Outcome::Succeeded { tool_error: false }),
        InvocationState::Failed => {
            let failure = FailureKind::Provider;
            Some(Outcome::Failed { failure, code: None, error_type: None, error_message: None })
        }
        InvocationState::Cancelled => Some(Outcome::Cancelled { code: None }),
        InvocationState::Absent | InvocationState::Started | InvocationState::Open | InvocationState::Refused => None,
    };
    let started = started();
    let terminal = governed.map(|governed| Terminal {
        reported: None,
        governed,
        notices: Vec::new(),
        sidecar: started.sidecar.clone(),
        at: Timestamp::from_micros(3_000),
        duration_us: 0,
    });
    let AttemptIds { tool_call, invocation } = ids();
    InvocationRecord { tool_call, invocation, state, started, evaluated, terminal, receipt: RECEIPT }
}

fn said(recalled: &Recalled) -> String {
    match recalled {
        Recalled::Repeat(Recorded::Allowed(pass)) => {
            assert!(pass.decided().repeat);
            "ALLOW again".to_owned()
        }
        Recalled::Repeat(Recorded::Refused(refusal)) => {
            assert!(refusal.decided.repeat);
            let message = refusal.message.as_ref().map_or("without its message", Message::tell);
            format!("{:?} again, {message}", refusal.decision)
        }
        Recalled::Reused => "reused".to_owned(),
        Recalled::Expired => "expired".to_owned(),
        Recalled::Unverifiable => "unverifiable".to_owned(),
    }
}

#[test]
fn b10_every_record_every_comparison_and_both_sides_of_the_validity() {
    use InvocationState::{Cancelled, Completed, Failed, Open, Refused, Started};
    let allow = || Some(evaluated(VerdictKind::Allowed, Some(10_000)));
    let without_validity = || Some(evaluated(VerdictKind::Allowed, None));
    let records = [
        ("started, undecided", Started, None),
        ("cancelled, undecided", Cancelled, None),
        ("open ALLOW", Open, allow()),
        ("open ALLOW without validity", Open, without_validity()),
        ("completed ALLOW", Completed, allow()),
        ("failed ALLOW", Failed, allow()),
        ("cancelled ALLOW", Cancelled, allow()),
        ("DENY", Failed, Some(evaluated(VerdictKind::Denied, None))),
        ("DENY, terminal fact missing", Refused, Some(evaluated(VerdictKind::Denied, None))),
        ("FAILED", Failed, Some(evaluated(VerdictKind::Failed, None))),
        ("FAILED, cancelled", Cancelled, Some(evaluated(VerdictKind::Failed, None))),
    ];
    let message = || Some(Message::new("told before".to_owned()));
    let comparisons = || {
        [("identical", Comparison::Identical(message())), ("different", Comparison::Different), ("unknown", Comparison::Unknown)]
    };
    let call = CallRecord::of(&call("{}"), None, false);
    let mut table = String::new();
    for (name, state, evaluated) in records {
        for (compared, comparison) in comparisons() {
            let answer = |now| {
                let record = recorded(state, evaluated.clone());
                said(&recall(record, &ids(), &call, comparison.clone(), Timestamp::from_micros(now)))
            };
            let (valid, after) = (answer(10_000), answer(10_001));
            let after = if after == valid { String::new() } else { format!("; later {after}") };
            writeln!(table, "{name:<28}| {compared:<10}| {valid}{after}").unwrap();
        }
    }
    insta::assert_snapshot!(table, @"
    started, undecided          | identical | unverifiable
    started, undecided          | different | reused
    started, undecided          | unknown   | unverifiable
    cancelled, undecided        | identical | reused
    cancelled, undecided        | different | reused
    cancelled, undecided        | unknown   | reused
    open ALLOW                  | identical | ALLOW again; later expired
    open ALLOW                  | different | reused
    open ALLOW                  | unknown   | unverifiable
    open ALLOW without validity | identical | expired
    open ALLOW without validity | different | reused
    open ALLOW without validity | unknown   | unverifiable
    completed ALLOW             | identical | reused
    completed ALLOW             | different | reused
    completed ALLOW             | unknown   | unverifiable
    failed ALLOW                | identical | reused
    failed ALLOW                | different | reused
    failed ALLOW                | unknown   | unverifiable
    cancelled ALLOW             | identical | reused
    cancelled ALLOW             | different | reused
    cancelled ALLOW             | unknown   | unverifiable
    DENY                        | identical | Deny again, told before
    DENY                        | different | reused
    DENY                        | unknown   | Deny again, without its message
    DENY, terminal fact missing | identical | Deny again, told before
    DENY, terminal fact missing | different | reused
    DENY, terminal fact missing | unknown   | Deny again, without its message
    FAILED                      | identical | Failed again, told before
    FAILED                      | different | reused
    FAILED                      | unknown   | Failed again, without its message
    FAILED, cancelled           | identical | Failed again, told before
    FAILED, cancelled           | different | reused
    FAILED, cancelled           | unknown   | Failed again, without its message
    ");
}

#[test]
fn b10_what_the_record_says_of_the_call_must_be_equal_whatever_memory_says() {
    let now = Timestamp::from_micros(1);
    let same = CallRecord::of(&call("{}"), None, false);
    let mut other_agent = same.clone();
    other_agent.subject.agent.revision = "8".parse().unwrap();
    let other_ids = AttemptIds { tool_call: "call-2".parse().unwrap(), ..ids() };
    for verdict in [VerdictKind::Allowed, VerdictKind::Denied] {
        for comparison in [Comparison::Identical(None), Comparison::Unknown] {
            let record = || recorded(InvocationState::Open, Some(evaluated(verdict, Some(10_000))));
            assert_eq!(said(&recall(record(), &ids(), &other_agent, comparison.clone(), now)), "reused");
            assert_eq!(said(&recall(record(), &other_ids, &same, comparison, now)), "reused");
        }
    }
}

#[test]
fn a_repeat_answers_with_the_place_of_the_first() {
    let record = recorded(InvocationState::Open, Some(evaluated(VerdictKind::Allowed, Some(10_000))));
    let call = CallRecord::of(&call("{}"), None, false);
    let recalled = recall(record, &ids(), &call, Comparison::Identical(None), Timestamp::from_micros(1));
    let Recalled::Repeat(Recorded::Allowed(pass)) = recalled else { panic!("not repeated") };
    let decided = pass.decided();
    assert_eq!((decided.sequence, decided.position, decided.attempt), (5, 50, 2));
    assert_eq!((&decided.tool_call, &decided.invocation), (&ids().tool_call, &ids().invocation));
    assert_eq!(decided.generation.number, 3);
    assert_eq!(pass.valid_until(), Timestamp::from_micros(10_000));
}

/// Acknowledges every append, or refuses it.
#[derive(Debug)]
struct Answers(Result<Receipt, AppendError>);

#[async_trait]
impl Store for Answers {
    async fn append(&self, _entry: Entry) -> Result<Receipt, AppendError> {
        self.0.clone()
    }
    async fn lookup(&self, _run: &RunKey, _call: &ToolCallId, _invocation: &InvocationId) -> Result<Lookup, Unavailable> {
        Ok(Lookup::default())
    }
    async fn invocation(&self, _run: &RunKey, _invocation: &InvocationId) -> Result<Option<InvocationRecord>, Unavailable> {
        Ok(None)
    }
    async fn undecided(&self) -> Result<Vec<(RunKey, InvocationKey, Started)>, Unavailable> {
        Ok(Vec::new())
    }
    async fn number(&self, _request: NumberRequest) -> Result<GenerationNumbers, Unavailable> {
        Ok(GenerationNumbers::default())
    }
    async fn last_activated(&self, _bundle: &BundleName, _sidecar: &SidecarId) -> Result<Option<LastActivated>, Unavailable> {
        Ok(None)
    }
    fn health(&self) -> StoreHealth {
        StoreHealth::Serving
    }
    async fn health_changed(&self, _seen: StoreHealth) -> StoreHealth {
        std::future::pending().await
    }
    async fn close(&self) {}
}

async fn judged_and_recorded(
    verdict: VerdictKind,
    answer: Result<Receipt, AppendError>,
) -> (Vec<&'static str>, Result<Recorded, AppendError>) {
    let key = IdentityKey::from_bytes(&[1; 32]).unwrap();
    let fresh = || "i-1".parse().unwrap();
    let received = Received::new(call("{}"), &key, fresh, false, Timestamp::from_micros(1_000));
    let generation = Chains::build(bundle(Vec::new()), &[]).unwrap().number(GenerationNumbers::default());
    let resolved = received.resolve(generation.into(), 1).unwrap();
    let rules =
        DecisionRules { when_no_hook_matches: WhenNoHookMatches::Deny, validity_us: 60, sidecar: "sidecar-1".parse().unwrap() };
    let judgement = Judgement {
        hooks: vec![entry(1, verdict, tollgate_domain::Enforcement::Enforce)],
        message: Some(Message::new("told".to_owned())),
        at: Timestamp::from_micros(2_000),
        duration_us: 9,
    };
    let judged = resolved.judge(judgement, &rules);
    let facts = judged.entry().facts.iter().map(|fact| fact.kind().as_str()).collect();
    (facts, record(&Answers(answer), judged).await)
}

#[tokio::test]
async fn p05_a_decision_exists_only_once_the_store_said_that_it_is_durable() {
    let (facts, answer) = judged_and_recorded(VerdictKind::Allowed, Ok(RECEIPT)).await;
    assert_eq!(facts, ["ToolCallStarted", "GovernanceEvaluated"]);
    let Recorded::Allowed(pass) = answer.unwrap() else { panic!("not allowed") };
    assert_eq!((pass.decided().sequence, pass.decided().attempt, pass.decided().repeat), (5, 2, false));
    assert_eq!(pass.valid_until(), Timestamp::from_micros(2_060));
    for verdict in [VerdictKind::Allowed, VerdictKind::Denied, VerdictKind::Failed] {
        for may_have_landed in [false, true] {
            let refused = AppendError::from(Unavailable { cause: UnavailableCause::Full, may_have_landed });
            let (_, answer) = judged_and_recorded(verdict, Err(refused.clone())).await;
            assert_eq!(answer.unwrap_err(), refused);
        }
    }
}

#[tokio::test]
async fn g17_a_refusal_is_recorded_with_its_end_and_told_with_its_message() {
    for (verdict, decision) in [(VerdictKind::Denied, Decision::Deny), (VerdictKind::Failed, Decision::Failed)] {
        let (facts, answer) = judged_and_recorded(verdict, Ok(RECEIPT)).await;
        assert_eq!(facts, ["ToolCallStarted", "GovernanceEvaluated", "ToolCallFailed"]);
        let Recorded::Refused(refusal) = answer.unwrap() else { panic!("not refused") };
        assert_eq!((refusal.decision, refusal.hook.unwrap().as_str()), (decision, "hook-1"));
        assert_eq!(refusal.message.unwrap().tell(), "told");
    }
}
