//! What a sidecar does before it serves: close what a crash cut, and put its start on record.

use std::sync::Arc;

use tollgate_domain::{
    AppendError, ConfigurationLoosened, Entry, Fact, History, SidecarId, SidecarStarted, SystemRun, Unavailable, codes,
};

use crate::{engine::Engine, generations::unwritten};

/// A key of the configuration that loosens a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseKey {
    /// The key.
    pub key: String,
    /// Its value; never a secret.
    pub value: String,
}

impl Engine {
    /// Closes invocations that an earlier process of this sidecar left undecided, and records this start with every
    /// loose key in force. Answers how many were closed.
    pub async fn start(self: &Arc<Self>, loose: &[LooseKey]) -> Result<u64, Unavailable> {
        let undecided = self.store.undecided().await?;
        let mut interrupted = 0;
        let own = |sidecar: &SidecarId| *sidecar == self.options.rules.sidecar;
        // Another sidecar of the same journal may be deciding what it began.
        for (run, key, started) in undecided.into_iter().filter(|(_, _, started)| own(&started.sidecar)) {
            match self.store.append(self.cancellation(run, key, started.at, &codes::INTERRUPTED)).await {
                Ok(_) => interrupted += 1,
                // Closed already.
                Err(AppendError::Conflict(_)) => {}
                Err(AppendError::Unavailable(unavailable)) => return Err(unavailable),
            }
        }
        let sidecar = self.options.rules.sidecar.clone();
        let at = self.clock.now();
        let mut facts = vec![Fact::SidecarStarted(SidecarStarted {
            sidecar: sidecar.clone(),
            version: self.options.version.clone(),
            identity_key: self.key.id(),
            interrupted,
            at,
        })];
        facts.extend(loose.iter().map(|LooseKey { key, value }| {
            Fact::ConfigurationLoosened(ConfigurationLoosened {
                key: key.clone(),
                value: value.clone(),
                sidecar: sidecar.clone(),
                at,
            })
        }));
        let entry = Entry { history: History::System(SystemRun::Sidecar(sidecar)), invocation: None, facts };
        self.store.append(entry).await.map(|_| interrupted).map_err(|error| unwritten(&error))
    }
}
