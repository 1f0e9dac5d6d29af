//! Histories and the words of the record: each begins a chain of its own, and each has the name that is stored.

use std::collections::HashSet;

use tollgate_domain::{Enforcement, History, OwnerKind, RunKey, SystemRun, UnavailableCause, VerdictKind};

use crate::sample::run;

#[test]
fn b18_no_two_histories_begin_alike() {
    let mut histories = vec![History::Run(run())];
    let vary = |change: &dyn Fn(&mut RunKey)| {
        let mut other = run();
        change(&mut other);
        History::Run(other)
    };
    histories.push(vary(&|run| run.tenant = "acmes".parse().unwrap()));
    histories.push(vary(&|run| run.workspace = "upport".parse().unwrap()));
    histories.push(vary(&|run| run.owner_kind = OwnerKind::Flow));
    histories.push(vary(&|run| run.owner = "run-1".parse().unwrap()));
    histories.push(vary(&|run| run.run = "desk".parse().unwrap()));
    histories.push(History::System(SystemRun::Bundle("acme".parse().unwrap())));
    histories.push(History::System(SystemRun::Bundle("other".parse().unwrap())));
    histories.push(History::System(SystemRun::Sidecar("acme".parse().unwrap())));
    let beginnings: HashSet<_> = histories.iter().map(History::genesis).collect();
    assert_eq!(beginnings.len(), histories.len());
}

#[test]
fn a_run_is_shown_by_its_five_parts_and_a_system_run_by_two() {
    assert_eq!(format!("{:?}", run()), "acme/support/RUN/desk/run-1");
    assert_eq!(OwnerKind::Flow.as_str(), "FLOW");
    assert_eq!(SystemRun::Bundle("acme".parse().unwrap()).parts(), ("bundle", "acme"));
    assert_eq!(SystemRun::Sidecar("one".parse().unwrap()).parts(), ("sidecar", "one"));
}

#[test]
fn a_digest_is_shown_as_its_hexadecimal_text() {
    let digest = run().genesis();
    assert_eq!(format!("{digest:?}"), digest.to_string());
    assert_eq!(digest.to_string().len(), 64);
}

#[test]
fn the_words_of_readers_and_metrics_stay() {
    use UnavailableCause::{Closed, Corrupt, Full, Io, Other, Overloaded, ReadOnly};
    use VerdictKind::{Abstained, Allowed, Denied, Failed};
    let causes = [Full, ReadOnly, Io, Corrupt, Overloaded, Closed, Other].map(UnavailableCause::as_str);
    assert_eq!(causes, ["full", "read_only", "io", "corrupt", "overloaded", "closed", "other"]);
    assert_eq!([Allowed, Denied, Failed, Abstained].map(VerdictKind::as_str), ["allowed", "denied", "failed", "abstained"]);
    assert_eq!([Enforcement::Enforce, Enforcement::Shadow].map(Enforcement::as_str), ["enforce", "shadow"]);
}
