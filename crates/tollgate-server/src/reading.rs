//! The doors' reading and writing of messages alone, with no server around: so hostile messages can be tried by
//! the million. Hidden, for it is no part of what a program that serves needs.

use std::time::Duration;

use tollgate_domain::{Call, FactFilter, InvocationId, Reported, RunKey, StoredFact};
use tollgate_proto::v1;
use tonic::Status;

use crate::{
    status::Problem,
    wire::{
        inbound::{self, InvalidField},
        outbound,
    },
};

/// The call that a request of Evaluate describes.
pub fn evaluate(request: v1::EvaluateRequest) -> Result<Call, Status> {
    inbound::call(request).map_err(refuse)
}

/// What a request of Complete reports, and of which invocation.
pub fn complete(request: v1::CompleteRequest) -> Result<(RunKey, InvocationId, Reported), Status> {
    inbound::completion(request).map_err(refuse)
}

/// The time that an element of a stream gives.
pub fn timeout(timeout: Option<prost_types::Duration>) -> Result<Option<Duration>, Status> {
    inbound::timeout(timeout).map_err(refuse)
}

/// Which facts a reader wants.
pub fn filter(filter: Option<v1::FactFilter>) -> Result<FactFilter, Status> {
    inbound::filter(filter).map_err(refuse)
}

/// A fact of a run as readers get it; `None` for a fact of the system.
#[must_use]
pub fn fact(stored: StoredFact) -> Option<v1::Fact> {
    outbound::fact(stored)
}

/// An entry of a bundle's history as readers get it; `None` for a fact that is none.
#[must_use]
pub fn history_entry(stored: StoredFact) -> Option<v1::HistoryEntry> {
    outbound::history_entry(stored)
}

fn refuse(field: InvalidField) -> Status {
    Problem::from(field).into_status()
}
