//! The same questions to another decision point, which keeps no durable record.

use std::{path::Path, rc::Rc, time::Duration};

use super::{POLICIES, Way, main_bundle, of, variant};
use crate::{
    bundles,
    calls::Kind,
    cerbos::Cerbos,
    contest::{self, Pace, Variant},
    load,
    report::Report,
    servers::{CONNECTIONS, Door, Program, Server},
};

pub(super) async fn measure(pace: Pace, report: &mut Report, program: Option<&Path>) {
    let Some(program) = program else {
        report.notes.push("(i) Cerbos is not installed here, and was not measured.".to_owned());
        return;
    };
    let policies = bundles::cerbos(POLICIES);
    let silent = Cerbos::start(program, &policies, false).await;
    let audited = Cerbos::start(program, &policies, true).await;
    let memory = Server::start(Program::Memory, &main_bundle(), Kind::Mix).await;
    let product = Server::start(Program::Product, &main_bundle(), Kind::Mix).await;
    for callers in [1, 64] {
        let name = |what: &str| format!("mix, unary, {callers}: {what}");
        let variants = [
            variant(&name("the program"), &product, Door::Tcp, Way::Unary, callers).await,
            variant(&name("in memory"), &memory, Door::Tcp, Way::Unary, callers).await,
            question(&name("Cerbos"), &silent, callers).await,
            question(&name("Cerbos, audit to a file"), &audited, callers).await,
        ];
        let rows = contest::run('i', pace, &variants).await;
        let mut figure = report.figure('i', &rows);
        for (ours, theirs) in [("the program", "Cerbos, audit to a file"), ("in memory", "Cerbos")] {
            let (our, their) = (of(&rows, &name(ours)), of(&rows, &name(theirs)));
            let rate = our.per_second / their.per_second;
            figure.claim(&format!("mix, {callers}: answers/s of {ours} / {theirs}"), None, rate, "");
            let cpu = our.cpu_us / their.cpu_us;
            figure.claim(&format!("mix, {callers}: server CPU of {ours} / {theirs}"), None, cpu, "");
        }
    }
    for server in [&memory, &product] {
        report.answers += server.check_facts().await;
    }
    assert!(audited.audit_bytes() > 0 && silent.audit_bytes() == 0, "one is audited, and the other is not");
    report.notes.push(
        "(i) Cerbos writes its audit file behind the answer and without fdatasync: its answers wait for nothing, the program's \
         for a durable record."
            .to_owned(),
    );
}

async fn question<'a>(name: &str, cerbos: &'a Cerbos, callers: usize) -> Variant<'a> {
    let connections = Rc::new(cerbos.connections(CONNECTIONS.min(callers)).await);
    let slice = move |length: Duration| {
        let connections = Rc::clone(&connections);
        let slice = async move {
            load::slice(&[cerbos.pid()], length, async |log, until| cerbos.unary(&connections, callers, log, until).await).await
        };
        Box::pin(slice) as _
    };
    Variant { name: name.to_owned(), slice: Box::new(slice) }
}
