//! Which policies of a hook can match a call at all, and Cedar's answer over those.
//!
//! A policy's scope can name one entity for each of principal, action and resource: the request's own
//! must be that entity or, where the scope says `in`, one of its descendants. Policies with the same three
//! bounds share a bucket, one that names several actions is in a bucket for each, and a request is
//! evaluated over the buckets whose bounds it can meet; an opinion has each policy once. The
//! technique and the proof that decision, determining and erring policies stay those of the full
//! scan are Cedar's own: `Cedar/Slice/PolicySlice.lean` and `Cedar/Thm/PolicySlice.lean` in
//! <https://github.com/cedar-policy/cedar-spec>. They rest on two facts: a scope is evaluated before
//! the conditions, and a scope that does not match cannot err.

use std::collections::{BTreeSet, HashMap};

use cedar_policy::{
    ActionConstraint, AuthorizationError, Authorizer, Decision, Entities, EntityUid, Policy, PolicyId, PolicySet, PolicySetError,
    PrincipalConstraint, Request, ResourceConstraint,
};

/// The number of an entity that bounds some scope.
type Bound = u32;
/// The bounds of principal, action and resource; `None` where the scope names no entity.
type Bounds = [Option<Bound>; 3];

/// The policies of one hook, arranged for evaluation.
#[derive(Debug, Default)]
pub(crate) struct PolicyIndex {
    bounds: HashMap<EntityUid, Bound>,
    buckets: HashMap<Bounds, PolicySet>,
}

/// What the policies of a hook say of a request. Each id is there once, and they are sorted by bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opinion {
    /// Policies that forbid it.
    pub(crate) forbids: Vec<PolicyId>,
    /// Policies that permit it; empty where one forbids it.
    pub(crate) permits: Vec<PolicyId>,
    /// Policies that could not be evaluated.
    pub(crate) errors: Vec<PolicyId>,
}

impl PolicyIndex {
    pub(crate) fn new(policies: impl IntoIterator<Item = Policy>) -> Result<Self, Box<PolicySetError>> {
        let mut index = Self::default();
        let mut sorted: HashMap<Bounds, Vec<Policy>> = HashMap::new();
        for policy in policies {
            for scope in scopes(&policy) {
                let bounds = scope.map(|uid| uid.map(|uid| index.number(uid)));
                sorted.entry(bounds).or_default().push(policy.clone());
            }
        }
        for (bounds, policies) in sorted {
            index.buckets.insert(bounds, PolicySet::from_policies(policies)?);
        }
        Ok(index)
    }

    fn number(&mut self, uid: EntityUid) -> Bound {
        let next = Bound::try_from(self.bounds.len()).unwrap_or(Bound::MAX);
        *self.bounds.entry(uid).or_insert(next)
    }

    /// Evaluates the candidates.
    pub(crate) fn evaluate(&self, authorizer: &Authorizer, request: &Request, entities: &Entities) -> Opinion {
        let mut opinion = Opinion::default();
        for set in self.candidates(request, entities) {
            let response = authorizer.is_authorized(request, set, entities);
            let reasons = response.diagnostics().reason().cloned();
            match response.decision() {
                Decision::Deny => opinion.forbids.extend(reasons),
                Decision::Allow => opinion.permits.extend(reasons),
            }
            opinion.errors.extend(response.diagnostics().errors().map(|error| match error {
                AuthorizationError::PolicyEvaluationError(error) => error.policy_id().clone(),
            }));
        }
        if !opinion.forbids.is_empty() {
            opinion.permits.clear();
        }
        for ids in [&mut opinion.forbids, &mut opinion.permits, &mut opinion.errors] {
            ids.sort_unstable();
            ids.dedup();
        }
        opinion
    }

    /// The policies that are evaluated for every call under an action, whoever makes it and whatever it is for.
    pub(crate) fn everywhere(&self, action: &EntityUid, entities: &Entities) -> BTreeSet<&PolicyId> {
        let sets = self.meeting([None, Some(action), None].map(|uid| self.met(uid, entities)));
        sets.flat_map(PolicySet::policies).map(Policy::id).collect()
    }

    /// Sets that together hold every policy that can match, or err, for this request.
    fn candidates(&self, request: &Request, entities: &Entities) -> impl Iterator<Item = &PolicySet> {
        self.meeting([request.principal(), request.action(), request.resource()].map(|uid| self.met(uid, entities)))
    }

    fn meeting(&self, [principals, actions, resources]: [Vec<Option<Bound>>; 3]) -> impl Iterator<Item = &PolicySet> {
        let mut found = Vec::new();
        for principal in &principals {
            for action in &actions {
                found.extend(resources.iter().filter_map(|resource| self.buckets.get(&[*principal, *action, *resource])));
            }
        }
        found.into_iter()
    }

    /// The bounds that an entity meets: none at all, itself, and its ancestors. They come from the entities of
    /// the evaluation, so that both have the same idea of who descends from whom.
    fn met(&self, uid: Option<&EntityUid>, entities: &Entities) -> Vec<Option<Bound>> {
        let ancestors = uid.into_iter().flat_map(|uid| entities.ancestors(uid).into_iter().flatten());
        let known = uid.into_iter().chain(ancestors).filter_map(|uid| self.bounds.get(uid).copied()).map(Some);
        std::iter::once(None).chain(known).collect()
    }
}

/// What a policy's scope comes to where each of its parts names one entity, or none: for each of several actions, one.
fn scopes(policy: &Policy) -> Vec<[Option<EntityUid>; 3]> {
    let principal = match policy.principal_constraint() {
        PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
        PrincipalConstraint::In(uid) | PrincipalConstraint::Eq(uid) | PrincipalConstraint::IsIn(_, uid) => Some(uid),
    };
    let resource = match policy.resource_constraint() {
        ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
        ResourceConstraint::In(uid) | ResourceConstraint::Eq(uid) | ResourceConstraint::IsIn(_, uid) => Some(uid),
    };
    // A set, because a list may name an action twice.
    let actions: BTreeSet<_> = match policy.action_constraint() {
        ActionConstraint::Any => [None].into(),
        ActionConstraint::Eq(uid) => [Some(uid)].into(),
        ActionConstraint::In(uids) => uids.into_iter().map(Some).collect(),
    };
    actions.into_iter().map(|action| [principal.clone(), action, resource.clone()]).collect()
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
