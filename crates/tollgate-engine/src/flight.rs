//! Invocations that are being judged, and what is remembered of those that were: enough to tell an
//! identical repeat from another call under the same id. In memory only, and bounded.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::{CancellationToken, DropGuard};
use tollgate_domain::{Comparison, Digest, InvocationId, Message, RunKey};

/// Most decided invocations that are remembered; the oldest is forgotten first, and an ALLOW that was
/// forgotten is answered as unverifiable.
const REMEMBERED_MAX_COUNT: usize = 16_384;

/// An invocation within all runs.
pub(crate) type FlightKey = (RunKey, InvocationId);

#[derive(Debug, Default)]
pub(crate) struct Flights(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    flying: HashMap<FlightKey, Flying>,
    remembered: HashMap<FlightKey, Remembered>,
    oldest: VecDeque<FlightKey>,
}

#[derive(Debug)]
struct Flying {
    fingerprint: Digest,
    landed: CancellationToken,
}

#[derive(Debug)]
struct Remembered {
    fingerprint: Digest,
    message: Option<Message>,
}

/// What is known of an invocation that is sent.
#[derive(Debug)]
pub(crate) enum Entrance {
    /// Nobody else judges it now; how it compares with a recorded one, should there be one.
    First(Flight, Comparison),
    /// The identical call is being judged: wait until this is cancelled, then enter again.
    Wait(CancellationToken),
    /// Another call is being judged under the same id.
    Different,
}

/// The right to judge one invocation. Dropped, it lets those who wait for it go on.
#[derive(Debug)]
pub(crate) struct Flight {
    key: FlightKey,
    fingerprint: Digest,
    table: Arc<Mutex<Table>>,
    _landed: DropGuard,
}

impl Flights {
    pub(crate) fn enter(&self, key: FlightKey, fingerprint: Digest) -> Entrance {
        let mut table = lock(&self.0);
        if let Some(flying) = table.flying.get(&key) {
            let same = flying.fingerprint == fingerprint;
            return if same { Entrance::Wait(flying.landed.clone()) } else { Entrance::Different };
        }
        let comparison = match table.remembered.get(&key) {
            None => Comparison::Unknown,
            Some(known) if known.fingerprint == fingerprint => Comparison::Identical(known.message.clone()),
            Some(_) => Comparison::Different,
        };
        let landed = CancellationToken::new();
        table.flying.insert(key.clone(), Flying { fingerprint, landed: landed.clone() });
        let flight = Flight { key, fingerprint, table: Arc::clone(&self.0), _landed: landed.drop_guard() };
        Entrance::First(flight, comparison)
    }
}

impl Flight {
    /// Remembers the decided call, so that an identical repeat can be answered.
    pub(crate) fn remember(&self, message: Option<Message>) {
        let mut table = lock(&self.table);
        let remembered = Remembered { fingerprint: self.fingerprint, message };
        if table.remembered.insert(self.key.clone(), remembered).is_none() {
            table.oldest.push_back(self.key.clone());
        }
        if table.oldest.len() > REMEMBERED_MAX_COUNT
            && let Some(oldest) = table.oldest.pop_front()
        {
            table.remembered.remove(&oldest);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.table).flying.remove(&self.key);
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // Every change of the table is one insertion or removal, so a panic leaves it whole.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
