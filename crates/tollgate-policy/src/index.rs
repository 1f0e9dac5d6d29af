//! Which policies of a hook can match a call at all, and Cedar's answer over those.
//!
//! Callers ask for an answer over the candidates and never see how they were selected. At present
//! every policy is a candidate. An index by scope has to keep one promise: verdict, determining ids
//! and erring ids are those of the full scan.

use std::collections::BTreeSet;

use cedar_policy::{AuthorizationError, Authorizer, Decision, Entities, Policy, PolicySet, PolicySetError, Request};

/// The policies of one hook, arranged for evaluation.
#[derive(Debug)]
pub(crate) struct PolicyIndex {
    sets: Vec<PolicySet>,
}

/// What the policies of a hook say of a request: ids as Cedar has them, sorted by bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opinion {
    /// Policies that forbid it.
    pub(crate) forbids: BTreeSet<String>,
    /// Policies that permit it; empty where one forbids it.
    pub(crate) permits: BTreeSet<String>,
    /// Policies that could not be evaluated.
    pub(crate) errors: BTreeSet<String>,
}

impl PolicyIndex {
    pub(crate) fn new(policies: impl IntoIterator<Item = Policy>) -> Result<Self, Box<PolicySetError>> {
        Ok(Self { sets: vec![PolicySet::from_policies(policies)?] })
    }

    /// Sets that together hold every policy that can match, or err, for this request.
    fn candidates(&self, _request: &Request, _entities: &Entities) -> impl Iterator<Item = &PolicySet> {
        self.sets.iter()
    }

    /// Evaluates the candidates.
    pub(crate) fn evaluate(&self, authorizer: &Authorizer, request: &Request, entities: &Entities) -> Opinion {
        let mut opinion = Opinion::default();
        for set in self.candidates(request, entities) {
            let response = authorizer.is_authorized(request, set, entities);
            let reasons = response.diagnostics().reason().map(ToString::to_string);
            match response.decision() {
                Decision::Deny => opinion.forbids.extend(reasons),
                Decision::Allow => opinion.permits.extend(reasons),
            }
            opinion.errors.extend(response.diagnostics().errors().map(|error| match error {
                AuthorizationError::PolicyEvaluationError(error) => error.policy_id().to_string(),
            }));
        }
        if !opinion.forbids.is_empty() {
            opinion.permits.clear();
        }
        opinion
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy::Context;

    use super::*;
    use crate::names;

    /// However the policies are spread over sets, the opinion is that of one set.
    #[test]
    fn an_opinion_does_not_depend_on_how_policies_are_arranged() {
        let texts = [
            "permit (principal, action, resource);",
            "forbid (principal, action, resource) when { principal.absent };",
            "forbid (principal, action, resource) when { context has no };",
            "permit (principal, action, resource) when { context has no };",
            "forbid (principal, action, resource);",
            "permit (principal, action, resource) when { 1 == 1 };",
        ];
        let parse = |index: usize| Policy::parse(Some(names::policy(&format!("p{index}"))), texts[index]).unwrap();
        let request = Request::new(names::agent("a"), names::action("x"), names::tool("t"), Context::empty(), None).unwrap();
        let (authorizer, entities) = (Authorizer::new(), Entities::empty());
        for chosen in 0_usize..1 << texts.len() {
            let indexes = || (0..texts.len()).filter(|index| chosen >> index & 1 == 1);
            let whole = PolicyIndex::new(indexes().map(parse)).unwrap();
            let spread = PolicyIndex { sets: indexes().map(|index| PolicySet::from_policies([parse(index)]).unwrap()).collect() };
            let opinion = |index: &PolicyIndex| index.evaluate(&authorizer, &request, &entities);
            assert_eq!(opinion(&spread), opinion(&whole), "{chosen:b}");
        }
    }
}
