//! What the group commit needs of a database: load, commit, number, heal, close.

use std::future::Future;

use tollgate_domain::{GenerationNumbers, NumberRequest, Unavailable, UnavailableCause};

use crate::ledger::{Batch, Counters, Found, Wanted};

/// The writing side of one database. Owned by the writer, so that there is one at a time.
pub(crate) trait Backend: Send + 'static {
    /// Finds what the ledger wants, one answer for each, in order.
    fn load(&mut self, wanted: &[Wanted]) -> impl Future<Output = Result<Vec<Found>, UnavailableCause>> + Send;

    /// Makes a batch durable: all of it, or none.
    fn commit(&mut self, batch: Batch) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Numbers a generation, durably.
    fn number(&mut self, request: &NumberRequest) -> impl Future<Output = Result<GenerationNumbers, Unavailable>> + Send;

    /// After a failure: begins anew, and proves that it can write. Everything that was cached is void.
    fn heal(&mut self) -> impl Future<Output = Result<Counters, UnavailableCause>> + Send;

    /// Leaves the database as tidy as it can.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}
