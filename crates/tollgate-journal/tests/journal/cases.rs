//! The rules that every store keeps.

use std::{collections::HashSet, sync::Arc};

use futures_util::future::join_all;
use tollgate_domain::{
    AppendError, BundleName, Conflict, Decision, Digest, Entry, Fact, FactFilter, FactQuery, GenerationNumbers, History,
    IllegalTransition, InvocationState, NumberRequest, Outcome, ResourceId, Revision, SidecarStarted, StoreHealth, SystemRun,
    Timestamp, Unavailable, UnavailableCause, VerdictKind,
};

use crate::support::*;

pub(crate) async fn b18_sequences_have_no_gaps_under_concurrency<J: Journal>(journal: &Arc<J>) {
    let tasks = (0..8).map(|task| {
        let journal = Arc::clone(journal);
        tokio::spawn(async move {
            for n in 0..25 {
                let run = run(&format!("run-{}", n % 3));
                let key = of(&format!("call-{task}-{n}"), &format!("invocation-{task}-{n}"), "mail.send");
                let receipt = journal.append(judged(&run, &key, Decision::Allow)).await.unwrap();
                assert_eq!(receipt.attempt, 1);
                journal.append(entry(&run, &key, vec![succeeded()])).await.unwrap();
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let mut positions = HashSet::new();
    let mut count = 0;
    for n in 0..3 {
        let facts = facts_of(&**journal, &run(&format!("run-{n}"))).await;
        count += facts.len();
        positions.extend(facts.iter().map(|fact| fact.position));
    }
    assert_eq!(count, 8 * 25 * 3);
    assert_eq!(positions.len(), count, "no two facts share a position");
}

pub(crate) async fn b18_every_digest_follows_from_its_predecessor<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    for n in 0..4 {
        let key = of("call", &format!("invocation-{n}"), "mail.send");
        journal.append(judged(&run, &key, Decision::Deny)).await.unwrap();
    }
    let facts = facts_of(&**journal, &run).await;
    assert_eq!(facts.len(), 12);
    assert_eq!(facts[0].previous, run.genesis());
}

pub(crate) async fn b24_attempts_count_the_started_facts_of_a_tool_call<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    for (n, decision) in [Decision::Deny, Decision::Failed, Decision::Allow].into_iter().enumerate() {
        let key = of("call", &format!("invocation-{n}"), "mail.send");
        let receipt = journal.append(judged(&run, &key, decision)).await.unwrap();
        assert_eq!(receipt.attempt as usize, n + 1, "denied attempts count");
    }
    let other = journal.append(judged(&run, &of("other", "invocation-9", "mail.send"), Decision::Allow)).await.unwrap();
    assert_eq!(other.attempt, 1, "each tool call counts its own");
    let last = journal.append(entry(&run, &of("call", "invocation-2", "mail.send"), vec![succeeded()])).await.unwrap();
    assert_eq!(last.attempt, 3, "an outcome belongs to the attempt that it ends");
}

pub(crate) async fn b24_duplicate_invocation_is_refused_and_writes_nothing<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let key = of("call", "invocation", "mail.send");
    let both =
        join_all([journal.append(judged(&run, &key, Decision::Allow)), journal.append(judged(&run, &key, Decision::Allow))])
            .await;
    assert_eq!(both.iter().filter(|answer| answer.is_ok()).count(), 1, "the first commit wins");
    assert!(both.contains(&Err(AppendError::Conflict(Conflict::InvocationExists))));
    let again = journal.append(judged(&run, &key, Decision::Deny)).await;
    assert_eq!(again, Err(AppendError::Conflict(Conflict::InvocationExists)));
    assert_eq!(facts_of(&**journal, &run).await.len(), 2);
}

pub(crate) async fn tool_call_of_another_tool_is_refused<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    journal.append(judged(&run, &of("call", "invocation-1", "mail.send"), Decision::Allow)).await.unwrap();
    let answer = journal.append(judged(&run, &of("call", "invocation-2", "mail.read"), Decision::Allow)).await;
    assert_eq!(answer, Err(AppendError::Conflict(Conflict::OtherTool)));
    assert_eq!(facts_of(&**journal, &run).await.len(), 2);
}

pub(crate) async fn invocation_of_another_tool_call_is_refused<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    journal.append(judged(&run, &of("call-1", "invocation", "mail.send"), Decision::Allow)).await.unwrap();
    for other in ["call-2", "call-1"] {
        let key = of(other, "invocation", "mail.send");
        let begun = journal.append(judged(&run, &key, Decision::Allow)).await;
        assert_eq!(begun, Err(AppendError::Conflict(Conflict::InvocationExists)));
    }
    let ended = journal.append(entry(&run, &of("call-2", "invocation", "mail.send"), vec![succeeded()])).await;
    assert_eq!(ended, Err(AppendError::Conflict(Conflict::InvocationExists)));
}

pub(crate) async fn facts_follow_the_lifecycle<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let key = of("call", "invocation", "mail.send");
    let refused =
        |state, fact: &Fact| Err(AppendError::Conflict(Conflict::Transition(IllegalTransition { state, fact: fact.kind() })));
    let allowed = evaluated("mail.send", Decision::Allow);

    let unbegun = journal.append(entry(&run, &key, vec![allowed.clone()])).await;
    assert_eq!(unbegun, refused(InvocationState::Absent, &allowed));
    journal.append(entry(&run, &key, vec![started("mail.send", 1)])).await.unwrap();
    let undecided = journal.append(entry(&run, &key, vec![succeeded()])).await;
    assert_eq!(undecided, refused(InvocationState::Started, &succeeded()));
    journal.append(entry(&run, &key, vec![evaluated("mail.send", Decision::Deny)])).await.unwrap();
    let refusal = journal.append(entry(&run, &key, vec![succeeded()])).await;
    assert_eq!(refusal, refused(InvocationState::Refused, &succeeded()));
    journal.append(entry(&run, &key, vec![denied()])).await.unwrap();
    // The second fact of an entry counts like the first, and an entry is all or nothing.
    let key = of("call", "invocation-2", "mail.send");
    let half = journal.append(entry(&run, &key, vec![started("mail.send", 1), succeeded()])).await;
    assert_eq!(half, refused(InvocationState::Started, &succeeded()));
    assert_eq!(facts_of(&**journal, &run).await.len(), 3);
}

pub(crate) async fn facts_of_the_system_and_of_calls_do_not_mix<J: Journal>(journal: &Arc<J>) {
    let key = of("call", "invocation", "mail.send");
    let system = History::System(SystemRun::Sidecar(sidecar("sidecar-1")));
    let start = SidecarStarted {
        sidecar: sidecar("sidecar-1"),
        version: "1".to_owned(),
        identity_key: crate::support::key(1).id(),
        interrupted: 0,
        at: Timestamp::from_micros(1),
    };
    let start = Fact::SidecarStarted(start);
    let run = History::Run(run("run"));
    for wrong in [
        Entry { history: system.clone(), invocation: Some(key.clone()), facts: vec![started("mail.send", 1)] },
        Entry { history: system.clone(), invocation: None, facts: vec![started("mail.send", 1)] },
        Entry { history: run.clone(), invocation: None, facts: vec![start.clone()] },
        Entry { history: run.clone(), invocation: None, facts: vec![started("mail.send", 1)] },
        Entry { history: run, invocation: Some(key), facts: vec![start.clone()] },
    ] {
        let answer = journal.append(wrong).await;
        assert!(matches!(answer, Err(AppendError::Conflict(Conflict::Transition(_)))), "{answer:?}");
    }
    let right = Entry { history: system.clone(), invocation: None, facts: vec![start] };
    let receipt = journal.append(right).await.unwrap();
    assert_eq!((receipt.sequence, receipt.attempt), (1, 0));
    assert_sound(&system, &walk(&**journal, &system, FactFilter::default(), 10).await);
}

pub(crate) async fn entry_without_facts_is_refused<J: Journal>(journal: &Arc<J>) {
    let answer = journal.append(entry(&run("run"), &of("call", "invocation", "mail.send"), Vec::new())).await;
    let refused = Unavailable { cause: UnavailableCause::Other, may_have_landed: false };
    assert_eq!(answer, Err(AppendError::Unavailable(refused)));
}

pub(crate) async fn p06_conflict_does_not_fail_its_neighbours<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let taken = of("call", "taken", "mail.send");
    journal.append(judged(&run, &taken, Decision::Allow)).await.unwrap();
    let answers = join_all((0..60).map(|n| {
        let fresh = of(&format!("call-{n}"), &format!("invocation-{n}"), "mail.send");
        journal.append(judged(&run, if n % 3 == 0 { &taken } else { &fresh }, Decision::Allow))
    }))
    .await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.is_ok(), n % 3 != 0, "entry {n}");
    }
    assert_eq!(facts_of(&**journal, &run).await.len(), 2 + 2 * 40);
}

pub(crate) async fn outcome_is_appended_once<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let key = of("call", "invocation", "mail.send");
    journal.append(judged(&run, &key, Decision::Allow)).await.unwrap();
    let both =
        join_all([journal.append(entry(&run, &key, vec![succeeded()])), journal.append(entry(&run, &key, vec![cancelled()]))])
            .await;
    assert_eq!(both.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(facts_of(&**journal, &run).await.len(), 3);
}

pub(crate) async fn lookup_tells_attempts_tool_and_invocation<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let nothing = journal.lookup(&run, &tool_call("call"), &invocation("invocation-1")).await.unwrap();
    assert_eq!((nothing.attempts, nothing.tool, nothing.invocation.is_none()), (0, None, true));

    let key = of("call", "invocation-1", "mail.send");
    let receipt = journal.append(judged(&run, &key, Decision::Allow)).await.unwrap();
    let found = journal.lookup(&run, &tool_call("call"), &invocation("invocation-1")).await.unwrap();
    assert_eq!((found.attempts, found.tool), (1, Some(key.tool.clone())));
    let record = found.invocation.unwrap();
    assert_eq!((record.state, record.receipt), (InvocationState::Open, receipt));
    assert_eq!(Fact::ToolCallStarted(record.started), started("mail.send", 1));
    assert_eq!(record.evaluated.map(Fact::GovernanceEvaluated), Some(evaluated("mail.send", Decision::Allow)));
    assert!(record.terminal.is_none());

    let fresh = journal.lookup(&run, &tool_call("call"), &invocation("invocation-2")).await.unwrap();
    assert_eq!((fresh.attempts, fresh.invocation.is_none()), (1, true));
    let foreign = journal.lookup(&run, &tool_call("other"), &invocation("invocation-1")).await.unwrap();
    assert_eq!((foreign.attempts, foreign.tool), (0, None));
    assert_eq!(foreign.invocation.unwrap().tool_call, key.tool_call, "an invocation is found whatever tool call is named");

    journal.append(entry(&run, &key, vec![succeeded()])).await.unwrap();
    let ended = journal.invocation(&run, &invocation("invocation-1")).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.receipt), (InvocationState::Completed, receipt));
    assert_eq!(ended.terminal.map(|terminal| terminal.governed), Some(Outcome::Succeeded { tool_error: false }));
    assert!(journal.invocation(&run, &invocation("unknown")).await.unwrap().is_none());
}

pub(crate) async fn repeat_of_a_refusal_tells_the_place_that_the_first_answer_told<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let receipt = journal.append(judged(&run, &of("call", "invocation", "mail.send"), Decision::Deny)).await.unwrap();
    assert_eq!(receipt.sequence, 3);
    let record = journal.invocation(&run, &invocation("invocation")).await.unwrap().unwrap();
    assert_eq!(record.receipt, receipt);
}

pub(crate) async fn runs_of_other_tenants_do_not_meet<J: Journal>(journal: &Arc<J>) {
    let key = of("call", "invocation", "mail.send");
    journal.append(judged(&run_in("acme", "run"), &key, Decision::Allow)).await.unwrap();
    let other = run_in("globex", "run");
    assert!(journal.invocation(&other, &key.invocation).await.unwrap().is_none());
    assert!(journal.tool_call(&other, &key.tool_call).await.unwrap().is_none());
    let receipt = journal.append(judged(&other, &key, Decision::Allow)).await.unwrap();
    assert_eq!((receipt.sequence, receipt.attempt), (2, 1));
}

pub(crate) async fn undecided_lists_what_a_crash_cut<J: Journal>(journal: &Arc<J>) {
    let cut = [of("call-1", "cut-1", "mail.send"), of("call-2", "cut-2", "mail.read")];
    for (key, run) in cut.iter().zip([run("run-1"), run("run-2")]) {
        journal.append(entry(&run, key, vec![started(key.tool.as_str(), 1)])).await.unwrap();
    }
    journal.append(judged(&run("run-1"), &of("call-3", "decided", "mail.send"), Decision::Allow)).await.unwrap();
    let undecided = journal.undecided().await.unwrap();
    let found: Vec<_> = undecided.iter().map(|(run, key, _)| (run.clone(), key.clone())).collect();
    assert_eq!(found, [(run("run-1"), cut[0].clone()), (run("run-2"), cut[1].clone())]);
    assert_eq!(Fact::ToolCallStarted(undecided[1].2.clone()), started("mail.read", 1));

    journal.append(entry(&run("run-1"), &cut[0], vec![cancelled()])).await.unwrap();
    journal.append(entry(&run("run-2"), &cut[1], vec![evaluated("mail.read", Decision::Allow)])).await.unwrap();
    assert!(journal.undecided().await.unwrap().is_empty());
}

fn number_request(revision: &str, hooks: &[(&str, &str)], last: Option<u64>) -> NumberRequest {
    NumberRequest {
        bundle: BundleName::parse("acme").unwrap(),
        revision: Revision::parse(revision).unwrap(),
        digest: Digest::of(revision.as_bytes()),
        hooks: hooks.iter().map(|(hook, content)| (ResourceId::parse(hook).unwrap(), Digest::of(content.as_bytes()))).collect(),
        last,
    }
}

fn hook_number(numbers: &GenerationNumbers, hook: &str) -> u64 {
    numbers.hooks[&ResourceId::parse(hook).unwrap()]
}

pub(crate) async fn p04_numbers_belong_to_content_and_rise<J: Journal>(journal: &Arc<J>) {
    let first = journal.number(number_request("a", &[("hooks/x", "1")], None)).await.unwrap();
    let again = journal.number(number_request("a", &[("hooks/x", "1")], Some(first.number))).await.unwrap();
    assert_eq!(first, again, "a restart and a second sidecar get the same");
    let second = journal.number(number_request("b", &[("hooks/x", "1")], Some(first.number))).await.unwrap();
    assert!(second.number > first.number);
    let other = NumberRequest { bundle: BundleName::parse("other").unwrap(), ..number_request("a", &[], None) };
    assert_eq!(journal.number(other).await.unwrap().number, 1, "each bundle counts its own");
    let late = journal.number(number_request("a", &[("hooks/x", "1")], None)).await.unwrap();
    assert_eq!(late, first, "a sidecar that ran none yet gets the number of the content");
}

pub(crate) async fn p04_content_that_returns_gets_a_new_number_once_a_higher_one_ran<J: Journal>(journal: &Arc<J>) {
    let first = journal.number(number_request("a", &[], None)).await.unwrap();
    let second = journal.number(number_request("b", &[], Some(first.number))).await.unwrap();
    let reverted = journal.number(number_request("a", &[], Some(second.number))).await.unwrap();
    assert!(reverted.number > second.number);
    let other_sidecar = journal.number(number_request("a", &[], Some(second.number))).await.unwrap();
    assert_eq!(other_sidecar, reverted, "sidecars on one journal agree");
    let far = journal.number(number_request("c", &[], Some(40))).await.unwrap();
    assert!(far.number > 40, "never below what the sidecar ran");
}

pub(crate) async fn p04_hook_numbers_rise_with_every_change<J: Journal>(journal: &Arc<J>) {
    let mut last = None;
    let mut seen = Vec::new();
    for (revision, content) in [("a", "1"), ("b", "1"), ("c", "2"), ("d", "1")] {
        let hooks = [("hooks/x", content), ("hooks/y", "same")];
        let numbers = journal.number(number_request(revision, &hooks, last)).await.unwrap();
        assert_eq!(hook_number(&numbers, "hooks/y"), 1);
        last = Some(numbers.number);
        seen.push(hook_number(&numbers, "hooks/x"));
    }
    assert_eq!(seen, [1, 1, 2, 3], "a revert is a change");
    let without = journal.number(number_request("e", &[("hooks/y", "same")], last)).await.unwrap();
    let returned = journal.number(number_request("f", &[("hooks/x", "1")], Some(without.number))).await.unwrap();
    assert_eq!(hook_number(&returned, "hooks/x"), 4, "so is a return");
    let again = journal.number(number_request("f", &[("hooks/x", "1")], Some(returned.number))).await.unwrap();
    assert_eq!(again, returned);
}

pub(crate) async fn last_activation_is_each_sidecars_own<J: Journal>(journal: &Arc<J>) {
    let bundle = BundleName::parse("acme").unwrap();
    assert!(journal.last_activated(&bundle, &sidecar("one")).await.unwrap().is_none());
    for (by, number) in [("one", 1), ("two", 1), ("one", 3), ("one", 2)] {
        journal.append(activated("acme", by, number)).await.unwrap();
    }
    let last = journal.last_activated(&bundle, &sidecar("one")).await.unwrap().unwrap();
    assert_eq!((last.number, last.serial, last.revision.as_str()), (2, Some(20), "r"));
    assert_eq!(journal.last_activated(&bundle, &sidecar("two")).await.unwrap().unwrap().number, 1);
    let other = BundleName::parse("other").unwrap();
    assert!(journal.last_activated(&other, &sidecar("one")).await.unwrap().is_none());
}

pub(crate) async fn g20_pages_walk_all_facts_without_gap_or_repeat<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    for n in 0..20 {
        let key = of(&format!("call-{n}"), &format!("invocation-{n}"), "mail.send");
        journal.append(judged(&run, &key, Decision::Deny)).await.unwrap();
    }
    let history = History::Run(run.clone());
    for page in [1, 7, 59, 60, 61, 200] {
        assert_sound(&history, &walk(&**journal, &history, FactFilter::default(), page).await);
        assert_eq!(walk(&**journal, &history, FactFilter::default(), page).await.len(), 60, "pages of {page}");
    }
    let exact = FactQuery { history, filter: FactFilter::default(), after_sequence: 0, limit: limit(60) };
    assert_eq!(journal.facts(exact.clone()).await.unwrap().unwrap().next, None, "next only where there is more");
    let beyond = journal.facts(FactQuery { after_sequence: 60, ..exact }).await.unwrap().unwrap();
    assert!(beyond.facts.is_empty() && beyond.next.is_none());
}

pub(crate) async fn g21_filters_hold_together_for_one_entry<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    for n in 0..12_u64 {
        let tool = if n % 2 == 0 { "mail.send" } else { "mail.read" };
        let (hook, decision) =
            [("guard", Decision::Allow), ("limit", Decision::Deny), ("guard", Decision::Failed)][(n % 3) as usize];
        let key = of(&format!("call-{n}"), &format!("invocation-{n}"), tool);
        let facts = vec![started(tool, 1), evaluated_by(tool, hook, decision, 1 + n / 6)];
        journal.append(entry(&run, &key, facts)).await.unwrap();
    }
    let history = History::Run(run);
    let count = async |filter: FactFilter| {
        let pages = walk(&**journal, &history, filter.clone(), 2).await;
        assert_eq!(pages, walk(&**journal, &history, filter, 200).await);
        pages.len()
    };
    let none = FactFilter::default;
    assert_eq!(count(FactFilter { tool: Some("mail.send".parse().unwrap()), ..none() }).await, 12);
    assert_eq!(count(FactFilter { hook: Some("guard".to_owned()), ..none() }).await, 8);
    assert_eq!(count(FactFilter { hook: Some("hooks/limit".to_owned()), ..none() }).await, 4);
    assert_eq!(count(FactFilter { verdict: Some(VerdictKind::Denied), ..none() }).await, 4);
    let both = FactFilter { hook: Some("guard".to_owned()), verdict: Some(VerdictKind::Denied), ..none() };
    assert_eq!(count(both).await, 0);
    assert_eq!(count(FactFilter { decision: Some(Decision::Failed), ..none() }).await, 4);
    assert_eq!(count(FactFilter { generation: Some(2), ..none() }).await, 6);
    let narrow = FactFilter { tool: Some("mail.read".parse().unwrap()), generation: Some(2), ..none() };
    assert_eq!(count(narrow).await, 3);
}

pub(crate) async fn g22_unknown_run_is_none<J: Journal>(journal: &Arc<J>) {
    let unknown = run("unknown");
    let query =
        FactQuery { history: History::Run(unknown.clone()), filter: FactFilter::default(), after_sequence: 0, limit: limit(10) };
    assert!(journal.facts(query).await.unwrap().is_none());
    assert!(journal.tool_call(&unknown, &tool_call("call")).await.unwrap().is_none());
    assert!(journal.tool_calls(&unknown, 0, limit(10)).await.unwrap().is_none());
    // An entry that was refused makes no run.
    let key = of("call", "invocation", "mail.send");
    journal.append(entry(&unknown, &key, vec![succeeded()])).await.unwrap_err();
    assert!(journal.tool_calls(&unknown, 0, limit(10)).await.unwrap().is_none());
}

pub(crate) async fn b17_tool_call_tells_its_latest_attempt<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    journal.append(judged(&run, &of("call", "invocation-1", "mail.send"), Decision::Deny)).await.unwrap();
    let latest = of("call", "invocation-2", "mail.send");
    journal.append(entry(&run, &latest, vec![started("mail.send", 5)])).await.unwrap();
    let begun = journal.tool_call(&run, &latest.tool_call).await.unwrap().unwrap();
    assert_eq!((begun.attempts, &begun.latest_invocation, begun.state), (2, &latest.invocation, InvocationState::Started));
    assert_eq!((begun.started_at.as_micros(), begun.duration_us, begun.trace, begun.outcome), (5, None, None, None));

    journal.append(entry(&run, &latest, vec![evaluated("mail.send", Decision::Allow)])).await.unwrap();
    journal.append(entry(&run, &latest, vec![succeeded()])).await.unwrap();
    let ended = journal.tool_call(&run, &latest.tool_call).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.duration_us), (InvocationState::Completed, Some(8)));
    assert_eq!(ended.trace.unwrap().trace.decision, Decision::Allow);
    assert_eq!(ended.outcome, Some(Outcome::Succeeded { tool_error: false }));
    assert!(journal.tool_call(&run, &tool_call("unknown")).await.unwrap().is_none());
}

pub(crate) async fn b17_tool_calls_come_in_the_order_of_their_first_attempts<J: Journal>(journal: &Arc<J>) {
    let run = run("run");
    let names = ["zeta", "alpha", "mid", "beta", "omega"];
    for attempt in 0..2 {
        for name in names {
            let key = of(name, &format!("{name}-{attempt}"), "mail.send");
            journal.append(judged(&run, &key, Decision::Deny)).await.unwrap();
        }
    }
    journal.append(judged(&run_in("globex", "run"), &of("else", "else", "mail.send"), Decision::Allow)).await.unwrap();
    for page in [1, 2, 5, 200] {
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let page = journal.tool_calls(&run, after, limit(page)).await.unwrap().unwrap();
            found.extend(page.tool_calls.into_iter().map(|call| call.tool_call.to_string()));
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(found, names, "pages of {page}");
    }
}

pub(crate) async fn health_is_serving_until_closed<J: Journal>(journal: &Arc<J>) {
    assert_eq!(journal.health(), StoreHealth::Serving);
    let closed = StoreHealth::Failing(UnavailableCause::Closed);
    let (seen, ()) = tokio::join!(journal.health_changed(StoreHealth::Serving), journal.close());
    assert_eq!((seen, journal.health()), (closed, closed));
}

pub(crate) async fn closed_store_refuses_appends<J: Journal>(journal: &Arc<J>) {
    journal.close().await;
    let answer = journal.append(judged(&run("run"), &of("call", "invocation", "mail.send"), Decision::Allow)).await;
    let refused = Unavailable { cause: UnavailableCause::Closed, may_have_landed: false };
    assert_eq!(answer, Err(AppendError::Unavailable(refused)));
    assert_eq!(journal.number(number_request("a", &[], None)).await, Err(refused));
    journal.close().await;
}
