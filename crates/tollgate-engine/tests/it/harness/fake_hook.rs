//! Hooks that do as they are told, and log that they were asked.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tollgate_domain::{
    Code, Digest, Enforcement, Hook, HookAnswer, HookDefinition, HookInput, Locality, Message, Notice, NoticeFailed, Ownership,
    ResourceId, Selectors, Verdict,
};

use super::{Log, show};

/// What a hook does when it is asked or told.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Says Allowed, or takes the notice.
    Allow,
    /// Says Denied with this code and a message.
    Deny(&'static str),
    /// Says Failed with this code, or refuses the notice with it.
    Fail(&'static str),
    /// Says Abstained with this code.
    Abstain(&'static str),
    Panic,
    /// Never answers.
    Hang,
    /// Allows after this long.
    AllowAfter(Duration),
    /// Waits until the semaphore has a permit for it, then allows.
    AllowWhen(Arc<tokio::sync::Semaphore>),
}

#[derive(Clone, Debug)]
pub(crate) struct FakeHook {
    id: String,
    order: i32,
    does: Does,
    told: Does,
    wants_outcome: bool,
    locality: Locality,
    enforcement: Enforcement,
    ownership: Ownership,
    pub(crate) selectors: Selectors,
    content: String,
    log: Log,
}

/// An enforced hook of the organisation, of order 0, that allows.
pub(crate) fn hook(id: &str) -> FakeHook {
    FakeHook {
        id: id.to_owned(),
        order: 0,
        does: Does::Allow,
        told: Does::Allow,
        wants_outcome: false,
        locality: Locality::InProcess,
        enforcement: Enforcement::Enforce,
        ownership: Ownership::Organisation { resource: ResourceId::parse(&format!("hooks/{id}")).unwrap() },
        selectors: Selectors::default(),
        content: id.to_owned(),
        log: Log::default(),
    }
}

impl FakeHook {
    pub(crate) fn does(self, does: Does) -> Self {
        Self { does, ..self }
    }

    /// Wants outcome notices, and does this with them.
    pub(crate) fn told(self, told: Does) -> Self {
        Self { told, wants_outcome: true, ..self }
    }

    pub(crate) fn order(self, order: i32) -> Self {
        Self { order, ..self }
    }

    pub(crate) fn remote(self) -> Self {
        Self { locality: Locality::Remote, ..self }
    }

    pub(crate) fn shadow(self) -> Self {
        Self { enforcement: Enforcement::Shadow, ..self }
    }

    pub(crate) fn local(self) -> Self {
        Self { ownership: Ownership::Local, ..self }
    }

    /// Other content under the same id.
    pub(crate) fn content(self, content: &str) -> Self {
        Self { content: content.to_owned(), ..self }
    }

    pub(crate) fn definition(self, log: &Log) -> HookDefinition {
        HookDefinition {
            id: self.id.parse().unwrap(),
            display_name: self.id.clone(),
            order: self.order,
            enforcement: self.enforcement,
            ownership: self.ownership.clone(),
            selectors: self.selectors.clone(),
            digest: Digest::of(self.content.as_bytes()),
            hook: Arc::new(Self { log: log.clone(), ..self }),
        }
    }
}

#[async_trait]
impl Hook for FakeHook {
    async fn evaluate(&self, input: HookInput<'_>) -> HookAnswer {
        let lower_bound = input.attempt;
        self.log.add(format!("ask {} about {} attempt {lower_bound}", self.id, input.invocation));
        let code = |code: &str| Code::parse(code).unwrap();
        match &self.does {
            Does::Allow => Verdict::Allowed,
            Does::Deny(why) => Verdict::Denied { code: code(why), message: Some(Message::new(format!("{} says no", self.id))) },
            Does::Fail(why) => Verdict::Failed { code: code(why) },
            Does::Abstain(why) => Verdict::Abstained { code: code(why) },
            Does::Panic => panic!("a hook of this test panics"),
            Does::Hang => std::future::pending().await,
            Does::AllowAfter(time) => {
                tokio::time::sleep(*time).await;
                Verdict::Allowed
            }
            Does::AllowWhen(gate) => {
                gate.acquire().await.unwrap().forget();
                Verdict::Allowed
            }
        }
        .into()
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn wants_outcome(&self) -> bool {
        self.wants_outcome
    }

    async fn notify(&self, notice: &Notice) -> Result<(), NoticeFailed> {
        self.log.add(format!("tell {} of {} {}", self.id, notice.invocation, show::outcome(&notice.outcome)));
        match &self.told {
            Does::Fail(why) => Err(NoticeFailed { code: Code::parse(why).unwrap() }),
            Does::Panic => panic!("a hook of this test panics"),
            Does::Hang => std::future::pending().await,
            Does::AllowAfter(time) => {
                tokio::time::sleep(*time).await;
                Ok(())
            }
            Does::AllowWhen(gate) => {
                gate.acquire().await.unwrap().forget();
                Ok(())
            }
            Does::Allow | Does::Deny(_) | Does::Abstain(_) => Ok(()),
        }
    }
}
