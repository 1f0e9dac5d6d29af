//! Generations: one pointer, one swap; everything that comes before it, and what comes after.

use std::{
    sync::{Arc, PoisonError, RwLock},
    thread,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tollgate_domain::{
    AppendError, Bundle, BundleName, BundleSource, Candidate, Chains, Code, Entry, Fact, Generation, GenerationActivated,
    GenerationRefused, History, HookDefinition, NumberRequest, Refused, Revision, SystemRun, Timestamp, Unavailable,
    UnavailableCause, codes, kept_findings,
};

use crate::engine::Engine;

/// How often a retired generation is looked at, until nobody holds it.
const RETIRED_POLL: Duration = Duration::from_millis(50);

/// The generation that decides, and how its source stands; each kept apart.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// What decides.
    pub active: Option<Arc<Generation>>,
    /// Since when.
    pub activated_at: Option<Timestamp>,
    /// What the source offers now.
    pub desired: Option<Revision>,
    /// What was tried last.
    pub attempted: Option<Revision>,
    /// When a generation was last activated or confirmed.
    pub last_success_at: Option<Timestamp>,
    /// The last refusal, whether or not a later candidate succeeded.
    pub last_error: Option<GenerationRefused>,
}

#[derive(Debug)]
pub(crate) struct Generations {
    active: ArcSwapOption<Generation>,
    status: RwLock<Arc<Status>>,
    local: Vec<Arc<HookDefinition>>,
}

/// Why a well-formed bundle is not activated.
enum NotActivated {
    Refused { code: Code, detail: String },
    Journal(Unavailable),
}

impl From<Unavailable> for NotActivated {
    fn from(unavailable: Unavailable) -> Self {
        Self::Journal(unavailable)
    }
}

impl Generations {
    pub(crate) fn new(local: Vec<Arc<HookDefinition>>) -> Self {
        Self { active: ArcSwapOption::empty(), status: RwLock::default(), local }
    }

    /// The generation that decides now; the caller pins it by holding it.
    pub(crate) fn active(&self) -> Option<Arc<Generation>> {
        self.active.load_full()
    }

    pub(crate) fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn update(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut status));
    }
}

impl Engine {
    /// Activates what the source offers, one candidate after the other, until shutdown.
    pub fn keep_generations(self: &Arc<Self>, mut source: Box<dyn BundleSource>) {
        let engine = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    () = engine.stop.cancelled() => return,
                    candidate = source.next() => tokio::select! {
                        biased;
                        () = engine.stop.cancelled() => return,
                        () = engine.consider(candidate) => {}
                    },
                }
            }
        });
    }

    /// Activates or refuses one candidate. Waits out a journal that fails, since neither may go unrecorded.
    pub async fn consider(self: &Arc<Self>, candidate: Candidate) {
        match candidate {
            Err(refused) => self.refuse(refused, "see its findings").await,
            Ok(bundle) => {
                // Whatever comes of the bundle, its hooks are not dropped here, where calls are answered.
                let hooks: Vec<_> = bundle.hooks.iter().map(|hook| Arc::clone(&hook.hook)).collect();
                self.accept(bundle).await;
                drop_elsewhere(hooks);
            }
        }
        self.refresh_readiness();
    }

    async fn accept(self: &Arc<Self>, bundle: Bundle) {
        let (name, revision) = (bundle.name.clone(), bundle.revision.clone());
        self.generations.update(|status| {
            status.desired = Some(revision.clone());
            status.attempted = Some(revision.clone());
        });
        let active = self.generations.active();
        if let Some(active) = &active
            && active.reference().bundle == name
            && *active.revision() == revision
        {
            self.generations.update(|status| status.last_success_at = Some(self.clock.now()));
            return;
        }
        let refuse = |code| Refused { bundle: Some(name.clone()), revision: revision.clone(), code, findings: Vec::new() };
        match self.activate(bundle, active).await {
            Ok(()) => {}
            Err(NotActivated::Refused { code, detail }) => self.refuse(refuse(code), &detail).await,
            Err(NotActivated::Journal(unavailable)) => {
                tracing::warn!(
                    cause = unavailable.cause.as_str(),
                    "the bundle is not activated: its activation cannot be recorded"
                );
            }
        }
    }

    async fn activate(self: &Arc<Self>, bundle: Bundle, active: Option<Arc<Generation>>) -> Result<(), NotActivated> {
        let sidecar = &self.options.rules.sidecar;
        let last = self.persist(|| self.store.last_activated(&bundle.name, sidecar)).await?;
        if let (Some(last), Some(serial)) = (&last, bundle.serial)
            && last.revision != bundle.revision
            && last.serial.is_some_and(|newest| serial <= newest)
        {
            let detail = format!("serial {serial} is not above the last activated one");
            return Err(NotActivated::Refused { code: codes::OLDER_THAN_ACTIVE.clone(), detail });
        }
        let chains = Chains::build(bundle, &self.generations.local)
            .map_err(|duplicate| NotActivated::Refused { code: codes::DUPLICATE_HOOK.clone(), detail: duplicate.to_string() })?;
        // A bundle without a serial does not lower the bar for those that have one.
        let serial = chains.bundle().serial.max(last.as_ref().and_then(|last| last.serial));
        let request = NumberRequest {
            bundle: chains.bundle().name.clone(),
            revision: chains.bundle().revision.clone(),
            digest: chains.bundle().digest,
            hooks: chains.resources(),
            last: last.map(|last| last.number),
        };
        let numbers = self.persist(|| self.store.number(request.clone())).await?;
        let generation = Arc::new(chains.number(numbers));
        let at = self.clock.now();
        let fact = Fact::GenerationActivated(GenerationActivated {
            generation: generation.reference().clone(),
            revision: generation.revision().clone(),
            serial,
            replaced: active.as_ref().map(|active| active.reference().number),
            hooks: generation.activated_hooks(),
            sidecar: sidecar.clone(),
            at,
        });
        self.append_system(SystemRun::Bundle(generation.reference().bundle.clone()), fact).await?;
        let old = self.generations.active.swap(Some(Arc::clone(&generation)));
        self.generations.update(|status| {
            status.active = Some(Arc::clone(&generation));
            status.activated_at = Some(at);
            status.last_success_at = Some(at);
        });
        metrics::counter!("tollgate_generation_changes_total", "result" => "activated").increment(1);
        #[expect(clippy::cast_precision_loss, reason = "a gauge; generation numbers stay far below 2^52")]
        metrics::gauge!("tollgate_generation_number").set(generation.reference().number as f64);
        tracing::info!(
            bundle = %generation.reference().bundle,
            generation = generation.reference().number,
            digest = %generation.reference().digest,
            "activated a generation"
        );
        drop(active);
        if let Some(old) = old {
            self.retire(old);
        }
        Ok(())
    }

    async fn refuse(self: &Arc<Self>, refused: Refused, detail: &str) {
        let bundle = refused.bundle.or_else(|| self.generations.active().map(|active| active.reference().bundle.clone()));
        let fact = GenerationRefused {
            bundle: bundle.unwrap_or_else(BundleName::unnamed),
            revision: refused.revision,
            code: refused.code,
            findings_count: refused.findings.len() as u64,
            findings: kept_findings(&refused.findings),
            sidecar: self.options.rules.sidecar.clone(),
            at: self.clock.now(),
        };
        metrics::counter!("tollgate_generation_changes_total", "result" => "refused").increment(1);
        tracing::warn!(
            bundle = %fact.bundle,
            revision = %fact.revision,
            code = %fact.code,
            findings = fact.findings_count,
            detail,
            "{}",
            if self.generations.active().is_some() {
                "refused a bundle; the generation before it serves on"
            } else {
                "refused a bundle; no generation is active, so nothing is approved"
            }
        );
        self.generations.update(|status| {
            status.desired = Some(fact.revision.clone());
            status.attempted = Some(fact.revision.clone());
            status.last_error = Some(fact.clone());
        });
        let system = SystemRun::Bundle(fact.bundle.clone());
        if let Err(unavailable) = self.append_system(system, Fact::GenerationRefused(fact)).await {
            tracing::error!(cause = unavailable.cause.as_str(), "the refusal of a bundle could not be recorded");
        }
    }

    async fn append_system(&self, run: SystemRun, fact: Fact) -> Result<(), Unavailable> {
        let entry = Entry { history: History::System(run), invocation: None, facts: vec![fact] };
        let append = || async { self.store.append(entry.clone()).await.map(drop).map_err(|error| unwritten(&error)) };
        self.persist(append).await
    }

    /// Repeats an operation of the journal until it heals; an error only where waiting cannot help.
    async fn persist<T, F: Future<Output = Result<T, Unavailable>>>(&self, operation: impl Fn() -> F) -> Result<T, Unavailable> {
        loop {
            match operation().await {
                Ok(value) => return Ok(value),
                Err(unavailable) if is_final(unavailable.cause) => return Err(unavailable),
                Err(_) => self.journal_heals().await,
            }
        }
    }

    /// Drops a generation once no call holds it.
    fn retire(self: &Arc<Self>, old: Arc<Generation>) {
        let engine = Arc::clone(self);
        self.tasks.spawn(async move {
            while Arc::strong_count(&old) > 1 {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(RETIRED_POLL) => {}
                    // A reader of the status may hold it for longer than the sidecar serves.
                    () = engine.stop.cancelled() => return,
                }
            }
            drop_elsewhere(old);
        });
    }
}

/// Drops what holds policies, and never on a thread that answers calls: dropping ten thousand policies takes tens of
/// milliseconds.
fn drop_elsewhere(policies: impl Send + 'static) {
    // The thread ends by itself; nobody waits for it. Where there can be none, dropping here is all that is left.
    drop(thread::Builder::new().name("tollgate-retire".to_owned()).spawn(move || drop(policies)));
}

/// A fact of the system that contradicts the record can only mean a record that is not what was written.
pub(crate) fn unwritten(error: &AppendError) -> Unavailable {
    match error {
        AppendError::Unavailable(unavailable) => *unavailable,
        AppendError::Conflict(_) => Unavailable { cause: UnavailableCause::Corrupt, may_have_landed: false },
    }
}

const fn is_final(cause: UnavailableCause) -> bool {
    match cause {
        UnavailableCause::Closed | UnavailableCause::Corrupt => true,
        UnavailableCause::Full
        | UnavailableCause::ReadOnly
        | UnavailableCause::Io
        | UnavailableCause::Overloaded
        | UnavailableCause::Other => false,
    }
}
