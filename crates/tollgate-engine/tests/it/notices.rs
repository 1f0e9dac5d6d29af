//! What an outcome notice tells: the context as recorded, the outcome, and when; never a result.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tollgate_domain::{Hook, HookAnswer, HookInput, Notice, NoticeFailed, Outcome, Reported, Timestamp, Verdict, codes};

use crate::harness::{World, bundle, call, hook, options};

#[derive(Debug)]
struct Listener {
    allows: bool,
    heard: Arc<Mutex<Vec<Notice>>>,
}

#[async_trait]
impl Hook for Listener {
    async fn evaluate(&self, _input: HookInput<'_>) -> HookAnswer {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let denied = Verdict::Denied { code: codes::TOOL_EXECUTION_DENIED.clone(), message: None };
        if self.allows { Verdict::Allowed } else { denied }.into()
    }

    fn wants_outcome(&self) -> bool {
        true
    }

    async fn notify(&self, notice: &Notice) -> Result<(), NoticeFailed> {
        self.heard.lock().unwrap().push(notice.clone());
        Ok(())
    }
}

async fn listening(allows: bool) -> (World, Arc<Mutex<Vec<Notice>>>) {
    let (world, heard) = (World::empty(options()), Arc::default());
    let mut first = bundle("first", vec![hook("a")], &world.log);
    first.hooks[0].hook = Arc::new(Listener { allows, heard: Arc::clone(&heard) });
    world.engine.consider(Ok(first)).await;
    (world, heard)
}

#[tokio::test(start_paused = true)]
async fn h12_h13_a_notice_holds_context_outcome_start_and_duration() {
    let (world, heard) = listening(true).await;
    let start = Timestamp::from_micros(1_700_000_000_000_000);
    world.decide(call("i-1")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let threw = Reported::ProviderFailed { error_type: "TimeoutError".to_owned(), error_message: String::new() };
    world.complete("i-1", threw.clone()).await.unwrap();
    let heard = heard.lock().unwrap();
    let [notice] = heard.as_slice() else { panic!("not told once") };
    assert_eq!((notice.tool_call.as_str(), notice.invocation.as_str(), notice.attempt), ("call-1", "i-1", 1));
    assert_eq!(notice.outcome, threw.into_outcome(true));
    assert_eq!((notice.started_at, notice.duration_us), (start, 320_000));
    assert_eq!(notice.context.subject.tool.id.as_str(), "mail.send");
    assert_eq!(notice.context.arguments_bytes, 12);
}

#[tokio::test(start_paused = true)]
async fn h12_a_notice_of_a_refusal_holds_the_same() {
    let (world, heard) = listening(false).await;
    world.decide(call("i-1")).await;
    world.decide(call("i-2")).await;
    let heard = heard.lock().unwrap();
    let [first, second] = heard.as_slice() else { panic!("not told twice") };
    assert!(matches!(&first.outcome, Outcome::Failed { code: Some(code), .. } if code.as_str() == "tool_execution_denied"));
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(first.duration_us, 20_000);
}
