//! The Rust SDK: connects to a sidecar over TCP or a Unix socket, and turns answers into types that
//! cannot be mistaken for an approval.
//!
//! It knows the wire contract and nothing of how a sidecar decides.

mod answer;
mod connect;

pub use answer::{Allowed, Answer, CallError, Refused};
pub use connect::{ConnectError, connect};
pub use prost_types::{Duration as WireDuration, Timestamp as WireTimestamp};
pub use tollgate_proto::v1;

use std::time::Duration;

use tonic::{Request, transport::Channel};
use v1::{
    CompleteRequest, CompleteResponse, EvaluateRequest, governance_service_client::GovernanceServiceClient,
    journal_service_client::JournalServiceClient, policy_service_client::PolicyServiceClient,
};

/// The data door of one sidecar. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct Gate {
    inner: GovernanceServiceClient<Channel>,
}

impl Gate {
    /// A gate over a connection made by [`connect`].
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self { inner: GovernanceServiceClient::new(channel) }
    }

    /// Asks before one physical attempt. The tool may be run only on [`Answer::Allowed`].
    ///
    /// An error means that there is no decision, and the tool must not be run. Where
    /// [`CallError::may_send_again`] says so, the same request may be sent again if it has an invocation id.
    pub async fn evaluate(&self, request: EvaluateRequest) -> Result<Answer, CallError> {
        self.ask(Request::new(request)).await
    }

    /// As [`Gate::evaluate`], with a deadline that the sidecar keeps too.
    pub async fn evaluate_within(&self, request: EvaluateRequest, timeout: Duration) -> Result<Answer, CallError> {
        let mut request = Request::new(request);
        request.set_timeout(timeout);
        self.ask(request).await
    }

    /// Tells how an allowed attempt ended. May be sent again: the first outcome stands.
    pub async fn complete(&self, request: CompleteRequest) -> Result<CompleteResponse, CallError> {
        let response = self.inner.clone().complete(request).await.map_err(|status| CallError::from_status(&status))?;
        Ok(response.into_inner())
    }

    async fn ask(&self, request: Request<EvaluateRequest>) -> Result<Answer, CallError> {
        let response = self.inner.clone().evaluate(request).await.map_err(|status| CallError::from_status(&status))?;
        Ok(Answer::of(response.into_inner()))
    }

    /// The generated client, for what this type does not wrap, such as the stream.
    #[must_use]
    pub fn raw(&self) -> GovernanceServiceClient<Channel> {
        self.inner.clone()
    }
}

/// The read door of one sidecar, over a connection made by [`connect`].
#[must_use]
pub fn journal(channel: Channel) -> JournalServiceClient<Channel> {
    JournalServiceClient::new(channel)
}

/// The status of policy of one sidecar, over a connection made by [`connect`].
#[must_use]
pub fn policy(channel: Channel) -> PolicyServiceClient<Channel> {
    PolicyServiceClient::new(channel)
}
