//! Whatever is appended, in whatever order and company: histories are sound, and both stores agree.

use proptest::prelude::*;
use tollgate_domain::{Decision, Entry, FactFilter, History, Reader, Store};
use tollgate_journal::MemoryJournal;

use crate::support::*;

/// One append: which run, tool call and invocation of it, and which facts, likely or not.
#[derive(Clone, Debug)]
struct Step {
    run: u8,
    call: u8,
    invocation: u8,
    tool: u8,
    facts: Vec<u8>,
}

fn step() -> impl Strategy<Value = Step> {
    let facts = prop_oneof![
        Just(vec![0]),
        Just(vec![0, 1]),
        Just(vec![0, 2, 4]),
        Just(vec![1]),
        Just(vec![2, 4]),
        Just(vec![3]),
        Just(vec![5]),
        prop::collection::vec(0_u8..6, 1..4),
    ];
    (0_u8..2, 0_u8..3, 0_u8..5, prop::bool::weighted(0.1), facts).prop_map(|(run, call, invocation, other, facts)| Step {
        run,
        call,
        invocation,
        tool: u8::from(other),
        facts,
    })
}

fn entry_of(step: &Step) -> Entry {
    let tool = if step.tool == 0 { "mail.send" } else { "mail.read" };
    let key = of(&format!("call-{}", step.call), &format!("invocation-{}", step.invocation), tool);
    let fact = |kind: &u8| match kind {
        0 => started(tool, 1),
        1 => evaluated(tool, Decision::Allow),
        2 => evaluated(tool, Decision::Deny),
        3 => succeeded(),
        4 => denied(),
        _ => cancelled(),
    };
    entry(&run(&format!("run-{}", step.run)), &key, step.facts.iter().map(fact).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn b18_any_interleaving_gives_sound_histories_and_stores_agree(steps in prop::collection::vec(step(), 1..60), width in 1_usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("journal.db");
            let mut sqlite = open(&path).await.unwrap();
            let memory = MemoryJournal::new();
            for (n, together) in steps.chunks(width).enumerate() {
                if n % 4 == 3 {
                    // A restart forgets everything but the record.
                    sqlite.close().await;
                    sqlite = open(&path).await.unwrap();
                }
                // In one batch, and one after the other: the answers are the same.
                let answers = futures_util::future::join_all(together.iter().map(|step| sqlite.append(entry_of(step)))).await;
                for (step, answer) in together.iter().zip(answers) {
                    assert_eq!(answer, memory.append(entry_of(step)).await, "{step:?}");
                }
            }
            for name in ["run-0", "run-1"] {
                let history = History::Run(run(name));
                let facts = walk(&sqlite, &history, FactFilter::default(), 7).await;
                assert_sound(&history, &facts);
                assert_eq!(&facts, &walk(&memory, &history, FactFilter::default(), 200).await);
                let calls = sqlite.tool_calls(&run(name), 0, limit(200)).await.unwrap();
                let same = memory.tool_calls(&run(name), 0, limit(200)).await.unwrap();
                assert_eq!(calls.map(|page| page.tool_calls), same.map(|page| page.tool_calls));
            }
            let undecided: Vec<_> = sqlite.undecided().await.unwrap();
            assert_eq!(undecided, memory.undecided().await.unwrap());
            sqlite.close().await;
        });
    }
}
