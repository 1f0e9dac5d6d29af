//! The read door: facts and tool calls of a run.

use std::sync::Arc;

use tollgate_domain::{FactQuery, History, Reader, Rights, RunKey};
use tollgate_proto::v1::{self, journal_service_server::JournalService};
use tonic::{Request, Response, Status};

use crate::{
    status::Problem,
    wire::{inbound, outbound},
};

/// The read door of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub(crate) reader: Arc<dyn Reader>,
    pub(crate) rights: Arc<Rights>,
}

impl Journal {
    /// The run that a request names, where this listener may see it.
    fn run(&self, run: Option<v1::RunKey>) -> Result<RunKey, Problem> {
        let run = inbound::run(run)?;
        if self.rights.cover_run(&run) { Ok(run) } else { Err(Problem::not_found("run")) }
    }

    async fn facts(&self, request: v1::ListFactsRequest) -> Result<v1::ListFactsResponse, Problem> {
        let filter = inbound::filter(request.filter)?;
        let limit = inbound::limit(request.limit)?;
        let history = History::Run(self.run(request.run)?);
        let query = FactQuery { history, filter, after_sequence: request.after_sequence, limit };
        let page = self.reader.facts(query).await?.ok_or_else(|| Problem::not_found("run"))?;
        Ok(v1::ListFactsResponse { facts: page.facts.into_iter().filter_map(outbound::fact).collect(), next: page.next })
    }

    async fn tool_call(&self, request: v1::GetToolCallRequest) -> Result<v1::GetToolCallResponse, Problem> {
        let id = inbound::required("tool_call_id", &request.tool_call_id, str::parse)?;
        let run = self.run(request.run)?;
        let summary = self.reader.tool_call(&run, &id).await?.ok_or_else(|| Problem::not_found("tool call in this run"))?;
        Ok(v1::GetToolCallResponse { tool_call: Some(outbound::tool_call(summary)) })
    }

    async fn tool_calls(&self, request: v1::ListToolCallsRequest) -> Result<v1::ListToolCallsResponse, Problem> {
        let limit = inbound::limit(request.limit)?;
        let run = self.run(request.run)?;
        let page = self.reader.tool_calls(&run, request.after, limit).await?.ok_or_else(|| Problem::not_found("run"))?;
        Ok(v1::ListToolCallsResponse {
            tool_calls: page.tool_calls.into_iter().map(outbound::tool_call).collect(),
            next: page.next,
        })
    }
}

#[tonic::async_trait]
impl JournalService for Journal {
    async fn list_facts(&self, request: Request<v1::ListFactsRequest>) -> Result<Response<v1::ListFactsResponse>, Status> {
        self.facts(request.into_inner()).await.map(Response::new).map_err(Problem::into_status)
    }

    async fn get_tool_call(&self, request: Request<v1::GetToolCallRequest>) -> Result<Response<v1::GetToolCallResponse>, Status> {
        self.tool_call(request.into_inner()).await.map(Response::new).map_err(Problem::into_status)
    }

    async fn list_tool_calls(
        &self,
        request: Request<v1::ListToolCallsRequest>,
    ) -> Result<Response<v1::ListToolCallsResponse>, Status> {
        self.tool_calls(request.into_inner()).await.map(Response::new).map_err(Problem::into_status)
    }
}
