//! The read door: which generation decides, and the history of its bundle.

use std::sync::Arc;

use tollgate_domain::{BundleName, FactFilter, FactQuery, History, Reader, Rights, SidecarId, SystemRun};
use tollgate_engine::Engine;
use tollgate_proto::v1::{self, history_entry::Event, policy_service_server::PolicyService};
use tonic::{Request, Response, Status};

use crate::{
    status::Problem,
    wire::{inbound, outbound},
};

/// The status of policy on this sidecar.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) engine: Arc<Engine>,
    pub(crate) reader: Arc<dyn Reader>,
    pub(crate) rights: Arc<Rights>,
    pub(crate) sidecar: SidecarId,
}

impl Policy {
    fn status(&self) -> v1::GetStatusResponse {
        let status = self.engine.status();
        let active = status.active.as_ref().map(|active| v1::ActiveGeneration {
            generation: Some(outbound::generation(active.reference())),
            revision: active.revision().to_string(),
            activated_at: status.activated_at.map(outbound::timestamp),
            hooks: self.visible_hooks(outbound::managed_hooks(active.activated_hooks())),
        });
        v1::GetStatusResponse {
            active,
            desired_revision: status.desired.as_ref().map(ToString::to_string).unwrap_or_default(),
            attempted_revision: status.attempted.as_ref().map(ToString::to_string).unwrap_or_default(),
            last_success_at: status.last_success_at.map(outbound::timestamp),
            last_error: status.last_error.clone().map(|refused| self.visible_findings(outbound::refused_generation(refused))),
            sidecar_id: self.sidecar.to_string(),
        }
    }

    async fn history(&self, request: v1::ListHistoryRequest) -> Result<v1::ListHistoryResponse, Problem> {
        let limit = inbound::limit(request.limit)?;
        let bundle = match (request.bundle.as_str(), &self.engine.status().active) {
            ("", Some(active)) => active.reference().bundle.clone(),
            ("", None) => BundleName::unnamed(),
            (name, _) => inbound::required("bundle", name, str::parse)?,
        };
        let history = History::System(SystemRun::Bundle(bundle));
        let query = FactQuery { history, filter: FactFilter::default(), after_sequence: request.after_sequence, limit };
        let page = self.reader.facts(query).await?.ok_or_else(|| Problem::not_found("bundle"))?;
        let mut entries: Vec<_> = page.facts.into_iter().filter_map(outbound::history_entry).collect();
        for entry in &mut entries {
            entry.event = entry.event.take().map(|event| match event {
                Event::Activated(activated) => {
                    Event::Activated(v1::GenerationActivated { hooks: self.visible_hooks(activated.hooks), ..activated })
                }
                Event::Refused(refused) => Event::Refused(self.visible_findings(refused)),
            });
        }
        Ok(v1::ListHistoryResponse { entries, next: page.next })
    }

    fn visible_hooks(&self, mut hooks: Vec<v1::ManagedHook>) -> Vec<v1::ManagedHook> {
        hooks.retain(|hook| self.may_see(&hook.resource_id));
        hooks
    }

    fn visible_findings(&self, mut refused: v1::GenerationRefused) -> v1::GenerationRefused {
        refused.findings.retain(|finding| self.may_see(&finding.path));
        refused
    }

    /// A narrowed listener learns of no place that names a tenant or workspace.
    fn may_see(&self, place: &str) -> bool {
        !(self.rights.are_narrowed() && place.starts_with("workspaces/"))
    }
}

#[tonic::async_trait]
impl PolicyService for Policy {
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(self.status()))
    }

    async fn list_history(&self, request: Request<v1::ListHistoryRequest>) -> Result<Response<v1::ListHistoryResponse>, Status> {
        self.history(request.into_inner()).await.map(Response::new).map_err(Problem::into_status)
    }
}
