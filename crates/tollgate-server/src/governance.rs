//! The data door: `Evaluate`, `EvaluateStream` and Complete.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::Instant};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tollgate_domain::Rights;
use tollgate_engine::Engine;
use tollgate_proto::v1::{self, governance_service_server::GovernanceService};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    admission::Admission,
    deadline::{grpc_timeout, time_limit},
    status::Problem,
    stream,
    wire::{inbound, outbound},
};

/// How long calls may take.
#[derive(Clone, Copy, Debug)]
pub struct EvaluateLimits {
    /// For a caller that states no deadline.
    pub default_timeout: Duration,
    /// For any caller.
    pub max_timeout: Duration,
}

/// The data door of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Governance {
    pub(crate) engine: Arc<Engine>,
    pub(crate) rights: Arc<Rights>,
    pub(crate) admission: Admission,
    pub(crate) limits: EvaluateLimits,
}

impl Governance {
    /// Judges a call that stands alone: without a place it is refused, and its caller knows when to come back.
    async fn judge_alone(&self, request: v1::EvaluateRequest, asked: Option<Duration>) -> Result<v1::EvaluateResponse, Problem> {
        let _place = self.admission.admit(size(&request))?;
        self.judge(request, self.time_limit(asked), &CancellationToken::new()).await
    }

    /// Judges an element of a stream, which waits for its place.
    pub(crate) async fn judge_element(
        &self,
        request: v1::EvaluateRequest,
        asked: Option<Duration>,
        share: &Semaphore,
        cancel: &CancellationToken,
    ) -> Result<v1::EvaluateResponse, Problem> {
        let timeout = self.time_limit(asked);
        let deadline = Instant::now() + timeout;
        let _share = tokio::time::timeout_at(deadline, share.acquire()).await;
        let waits = deadline.saturating_duration_since(Instant::now());
        let _place = self.admission.admit_within(size(&request), waits).await?;
        self.judge(request, deadline.saturating_duration_since(Instant::now()), cancel).await
    }

    async fn judge(
        &self,
        request: v1::EvaluateRequest,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<v1::EvaluateResponse, Problem> {
        let call = inbound::call(request)?;
        Ok(outbound::recorded(self.engine.evaluate(&self.rights, call, timeout, cancel).await?))
    }

    fn time_limit(&self, asked: Option<Duration>) -> Duration {
        time_limit(asked, self.limits.default_timeout, self.limits.max_timeout)
    }

    async fn end(&self, request: v1::CompleteRequest, asked: Option<Duration>) -> Result<v1::CompleteResponse, Problem> {
        let _place = self.admission.admit(0)?;
        let (run, invocation, reported) = inbound::completion(request)?;
        let timeout = self.time_limit(asked);
        Ok(outbound::completion(self.engine.complete(&self.rights, run, invocation, reported, timeout).await?))
    }
}

/// The bytes of a call that are parsed into values, which take several times as much.
fn size(request: &v1::EvaluateRequest) -> usize {
    request.arguments_json.len() + request.claims.as_ref().map_or(0, |claims| claims.attributes_json.len())
}

#[tonic::async_trait]
impl GovernanceService for Governance {
    type EvaluateStreamStream = Pin<Box<dyn Stream<Item = Result<v1::EvaluateStreamResponse, Status>> + Send>>;

    async fn evaluate(&self, request: Request<v1::EvaluateRequest>) -> Result<Response<v1::EvaluateResponse>, Status> {
        let asked = grpc_timeout(request.metadata());
        self.judge_alone(request.into_inner(), asked).await.map(Response::new).map_err(Problem::into_status)
    }

    async fn evaluate_stream(
        &self,
        request: Request<Streaming<v1::EvaluateStreamRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        Ok(Response::new(Box::pin(stream::answer(self.clone(), request.into_inner()))))
    }

    async fn complete(&self, request: Request<v1::CompleteRequest>) -> Result<Response<v1::CompleteResponse>, Status> {
        let asked = grpc_timeout(request.metadata());
        self.end(request.into_inner(), asked).await.map(Response::new).map_err(Problem::into_status)
    }
}
