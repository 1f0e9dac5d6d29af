//! A Cedar hook: one schema, one set of policies, and one door from an evaluation to a verdict.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use cedar_policy::{Authorizer, EntityUid, Request, RequestValidationError, Schema};
use tollgate_domain::{Code, Evidence, Hook, HookAnswer, HookInput, Message, PolicyId, Verdict, codes};

use crate::{
    files::Mode,
    index::{Opinion, PolicyIndex},
    mapping::Plan,
    names,
    policies::Speech,
    store::EntityStore,
};

/// The actions under which a hook judges.
pub(crate) enum Actions {
    /// One for every tool, without arguments.
    Invoke(EntityUid, Plan),
    /// One per tool, by `<provider>/<external name>`.
    Typed(HashMap<String, (EntityUid, Plan)>),
}

impl Actions {
    pub(crate) fn uids(&self) -> impl Iterator<Item = &EntityUid> {
        let (invoke, typed) = match self {
            Self::Invoke(action, _) => (Some(action), None),
            Self::Typed(actions) => (None, Some(actions.values().map(|(action, _)| action))),
        };
        invoke.into_iter().chain(typed.into_iter().flatten())
    }
}

/// A compiled hook.
pub(crate) struct CedarHook {
    pub(crate) mode: Mode,
    pub(crate) actions: Actions,
    pub(crate) policies: PolicyIndex,
    pub(crate) speeches: HashMap<PolicyId, Speech>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) entities: Arc<EntityStore>,
    /// Entities that the policies name.
    pub(crate) literals: Vec<EntityUid>,
    pub(crate) authorizer: Authorizer,
}

#[async_trait]
impl Hook for CedarHook {
    async fn evaluate(&self, input: HookInput<'_>) -> HookAnswer {
        self.judge(&input)
    }
}

impl CedarHook {
    /// Judges one call. Everything that is not plainly allowed or denied is Failed.
    pub(crate) fn judge(&self, call: &HookInput<'_>) -> HookAnswer {
        self.opinion(call)
            .map_or_else(|code| Verdict::Failed { code }.into(), |opinion| answer(self.mode, &self.speeches, &opinion))
    }

    fn opinion(&self, call: &HookInput<'_>) -> Result<Opinion, Code> {
        let (action, plan) = self.action(call).ok_or_else(|| codes::ACTION_UNDECLARED.clone())?;
        let context = plan.context(call)?;
        let principal = names::agent(call.call.agent.id.as_str());
        let resource = names::tool(call.tool.id.as_str());
        // The error's text is dropped where it arises: it prints the context, arguments included.
        let request =
            Request::new(principal, action.clone(), resource, context, Some(&self.schema)).map_err(|error| unfit(&error))?;
        let entities = self.entities.for_call(call, action, &self.literals)?;
        Ok(self.policies.evaluate(&self.authorizer, &request, &entities))
    }

    fn action(&self, call: &HookInput<'_>) -> Option<(&EntityUid, &Plan)> {
        match &self.actions {
            Actions::Invoke(action, plan) => Some((action, plan)),
            Actions::Typed(actions) => {
                let (provider, name) = call.tool.provider.as_ref().zip(call.tool.external_name.as_ref())?;
                actions.get(&names::typed_action(provider.as_str(), name.as_str())).map(|(action, plan)| (action, plan))
            }
        }
    }
}

impl fmt::Debug for CedarHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CedarHook").field("mode", &self.mode).field("policies", &self.speeches.len()).finish_non_exhaustive()
    }
}

/// What a hook says where its policies came to an opinion.
pub(crate) fn answer(mode: Mode, speeches: &HashMap<PolicyId, Speech>, opinion: &Opinion) -> HookAnswer {
    let Opinion { forbids, permits, errors } = opinion;
    let determining = if forbids.is_empty() { permits } else { forbids };
    let verdict = if !errors.is_empty() {
        // Cedar skips a policy that errs; a skipped forbid would let the call through.
        Verdict::Failed { code: codes::POLICY_ERROR.clone() }
    } else if let Some(first) = forbids.first() {
        denial(speeches, first)
    } else if !permits.is_empty() || mode == Mode::ForbidOnly {
        Verdict::Allowed
    } else {
        Verdict::Denied { code: codes::NO_PERMIT.clone(), message: None }
    };
    HookAnswer { verdict, evidence: Evidence { determining: ids(determining), erroring: ids(errors) } }
}

fn denial(speeches: &HashMap<PolicyId, Speech>, policy: &cedar_policy::PolicyId) -> Verdict {
    let speech = PolicyId::parse(policy.as_ref()).ok().and_then(|id| speeches.get(&id)).cloned().unwrap_or_default();
    let code = speech.code.unwrap_or_else(|| codes::TOOL_EXECUTION_DENIED.clone());
    Verdict::Denied { code, message: speech.message.map(Message::new) }
}

fn ids(policies: &[cedar_policy::PolicyId]) -> Vec<PolicyId> {
    policies.iter().filter_map(|id| PolicyId::parse(id.as_ref()).ok()).collect()
}

/// Why a request is none by the schema, in our own words.
fn unfit(error: &RequestValidationError) -> Code {
    match error {
        RequestValidationError::UndeclaredAction(_)
        | RequestValidationError::ExternalAction(_)
        | RequestValidationError::UndeclaredPrincipalType(_)
        | RequestValidationError::UndeclaredResourceType(_)
        | RequestValidationError::InvalidPrincipalType(_)
        | RequestValidationError::InvalidResourceType(_) => codes::ACTION_UNDECLARED.clone(),
        RequestValidationError::InvalidContext(_)
        | RequestValidationError::TypeOfContext(_)
        | RequestValidationError::InvalidEnumEntity(_) => codes::CONTEXT_UNAVAILABLE.clone(),
        // The enum may grow; what this version does not know fails like the rest.
        _ => codes::TOOL_EXECUTION_HOOK_FAILED.clone(),
    }
}
