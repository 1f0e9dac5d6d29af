//! The order of a chain, duplicates within it, and the numbers that its hooks carry.

use std::{collections::HashMap, sync::Arc};

use tollgate_domain::{Chains, GenerationNumbers, Hook, HookDefinition, Locality, Ownership, Source, limits};

use crate::sample::{Silent, bundle, hook, organisation, run, workspace};

fn order(hooks: Vec<HookDefinition>, local: Vec<HookDefinition>) -> Vec<String> {
    let local: Vec<_> = local.into_iter().map(Arc::new).collect();
    let generation = Chains::build(bundle(hooks), &local).unwrap().number(GenerationNumbers::default());
    let run = run();
    generation.chain(&run.tenant, &run.workspace).iter().map(|hook| hook.id.as_str().to_owned()).collect()
}

fn managed(id: &str, order: i32) -> HookDefinition {
    hook(id, order, organisation(id))
}

#[test]
fn h04_hooks_are_asked_by_order_and_then_by_the_bytes_of_their_ids() {
    let hooks = vec![
        managed("a", 0),
        managed("B", 0),
        managed("b", -1),
        managed("z", limits::ORDER_MIN),
        managed("aa", 0),
        managed("é", 0),
        managed("z2", 0),
        managed("10", 0),
        managed("9", 0),
        managed("a", limits::ORDER_MAX).renamed("last"),
    ];
    assert_eq!(order(hooks, Vec::new()), ["z", "b", "10", "9", "B", "a", "aa", "z2", "é", "last"]);
}

trait Renamed {
    fn renamed(self, id: &str) -> Self;
}

impl Renamed for HookDefinition {
    fn renamed(self, id: &str) -> Self {
        Self { id: id.parse().unwrap(), ..self }
    }
}

#[test]
fn m06_managed_and_local_hooks_share_one_order() {
    let managed = vec![managed("b", 1), managed("d", 3), hook("c", 2, workspace("support", "c"))];
    let local = vec![hook("a", 0, Ownership::Local), hook("bb", 1, Ownership::Local)];
    assert_eq!(order(managed, local), ["a", "b", "bb", "c", "d"]);
}

fn refused(hooks: Vec<HookDefinition>, local: Vec<HookDefinition>) -> String {
    let local: Vec<_> = local.into_iter().map(Arc::new).collect();
    Chains::build(bundle(hooks), &local).unwrap_err().hook.as_str().to_owned()
}

#[test]
fn h05_an_id_twice_in_one_chain_is_refused_wherever_both_come_from() {
    let own = |place: &str| hook("twice", 5, workspace(place, "twice"));
    let local = || hook("twice", -5, Ownership::Local);
    assert_eq!(refused(vec![managed("twice", 0), managed("twice", 1)], Vec::new()), "twice");
    assert_eq!(refused(vec![managed("twice", 0), own("support")], Vec::new()), "twice");
    assert_eq!(refused(vec![own("support"), own("support")], Vec::new()), "twice");
    assert_eq!(refused(vec![managed("twice", 0)], vec![local()]), "twice");
    assert_eq!(refused(vec![own("support")], vec![local()]), "twice");
    assert_eq!(refused(Vec::new(), vec![local(), local()]), "twice");
}

#[test]
fn h05_an_id_may_be_used_by_two_workspaces_and_in_two_spellings() {
    let hooks = vec![hook("own", 0, workspace("support", "own")), hook("own", 0, workspace("sales", "own")), managed("Own", 0)];
    assert_eq!(order(hooks, Vec::new()), ["Own", "own"]);
}

#[test]
fn g08_managed_hooks_carry_their_generation_and_local_ones_none() {
    let hooks = vec![managed("a", 0), hook("own", 0, workspace("support", "own")), hook("far", 0, workspace("sales", "far"))];
    let local = [Arc::new(hook("local", 0, Ownership::Local))];
    let chains = Chains::build(bundle(hooks), &local).unwrap();
    let resources: Vec<_> = chains.resources().into_iter().map(|(resource, _)| resource).collect();
    let names: Vec<_> = resources.iter().map(tollgate_domain::ResourceId::as_str).collect();
    assert_eq!(names, ["hooks/a", "workspaces/acme/sales/hooks/far", "workspaces/acme/support/hooks/own"]);
    let numbers: HashMap<_, _> = resources.into_iter().zip(4..).collect();
    let generation = chains.number(GenerationNumbers { number: 9, hooks: numbers });
    assert_eq!(generation.reference().number, 9);
    let activated: Vec<_> = generation.activated_hooks().into_iter().map(|hook| hook.generation).collect();
    assert_eq!(activated, [4, 5, 6]);
    let run = run();
    for hook in generation.chain(&run.tenant, &run.workspace).iter() {
        let resource = generation.resource_of(hook).map(|resource| (resource.id.as_str().to_owned(), resource.generation));
        let expected = match hook.id.as_str() {
            "a" => Some(("hooks/a".to_owned(), 4)),
            "own" => Some(("workspaces/acme/support/hooks/own".to_owned(), 6)),
            _local => None,
        };
        assert_eq!(resource, expected);
        assert_eq!(hook.ownership.source() == Source::Managed, expected.is_some());
    }
}

#[test]
fn a_hook_decides_in_this_process_and_wants_no_outcome_unless_it_says_so() {
    assert_eq!(Silent.locality(), Locality::InProcess);
    assert!(!Silent.wants_outcome());
}
