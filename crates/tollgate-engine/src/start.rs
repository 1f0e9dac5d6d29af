//! What a sidecar does before it serves: close what a crash cut, and put its start on record.

use std::sync::Arc;

use tollgate_domain::{AppendError, ConfigurationLoosened, Entry, Fact, History, SidecarStarted, SystemRun, Unavailable, codes};

use crate::engine::Engine;

/// A key of the configuration that loosens a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseKey {
    /// The key.
    pub key: String,
    /// Its value; never a secret.
    pub value: String,
}

impl Engine {
    /// Closes invocations that an earlier process left undecided, and records this start with every
    /// loose key in force. Answers how many were closed.
    pub async fn start(self: &Arc<Self>, loose: &[LooseKey]) -> Result<u64, Unavailable> {
        let undecided = self.store.undecided().await?;
        let mut interrupted = 0;
        for (run, key, started) in undecided {
            match self.store.append(self.cancellation(run, key, started.at, &codes::INTERRUPTED)).await {
                Ok(_) => interrupted += 1,
                // Another sidecar of the same journal closed it, or is deciding it right now.
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
        match self.store.append(entry).await {
            Ok(_) | Err(AppendError::Conflict(_)) => Ok(interrupted),
            Err(AppendError::Unavailable(unavailable)) => Err(unavailable),
        }
    }
}
