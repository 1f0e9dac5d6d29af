//! What durability costs: the same sidecar on its journal and on one in memory.

use tollgate_tests::trees::Tree;

use super::{Way, main_bundle, of, variant};
use crate::{
    bundles,
    calls::Kind,
    contest::{self, Pace, worst_foreign},
    report::{Goal, Report},
    servers::{Door, Program, Server},
};

const UNARY_GOAL: Goal = Goal::AtLeast(0.75);
const STREAM_GOAL: Goal = Goal::AtLeast(0.85);

pub(super) async fn measure(pace: Pace, report: &mut Report) {
    for callers in [1, 64, 256] {
        measure_with(pace, report, &main_bundle(), Kind::Read, callers).await;
    }
    measure_with(pace, report, &bundles::sample(), Kind::Sample, 64).await;
}

async fn measure_with(pace: Pace, report: &mut Report, bundle: &Tree, kind: Kind, callers: usize) {
    let of_what = if kind == Kind::Sample { "sample bundle, " } else { "" };
    let memory = Server::start(Program::Memory, bundle, kind).await;
    let sqlite = Server::start(Program::Sqlite, bundle, kind).await;
    let product = Server::start(Program::Product, bundle, kind).await;
    let servers = [("in memory", &memory), ("durable", &sqlite), ("the program", &product)];
    let mut variants = Vec::new();
    for (way, sent) in [(Way::Unary, "unary"), (Way::Stream, "stream")] {
        for (journal, server) in servers {
            let name = format!("{of_what}{sent}, {callers}: {journal}");
            variants.push(variant(&name, server, Door::Tcp, way, callers).await);
        }
    }
    let rows = contest::run('a', pace, &variants).await;
    let row = |sent: &str, journal: &str| of(&rows, &format!("{of_what}{sent}, {callers}: {journal}"));
    let mut figure = report.figure('a', &rows);
    for (sent, goal) in [("unary", UNARY_GOAL), ("stream", STREAM_GOAL)] {
        let ratio = |above, below| row(sent, above).per_second / row(sent, below).per_second;
        let name = |what: &str| format!("{of_what}{sent}, {callers}: {what}");
        let goal = (callers > 1 && kind == Kind::Read).then_some(goal);
        figure.claim(&name("durable / in memory"), goal, ratio("durable", "in memory"), "");
        figure.claim(&name("the program / the bench's own, durable"), None, ratio("the program", "durable"), "");
    }
    let mut figure = report.figure_beside('h', worst_foreign(&rows));
    for sent in ["unary", "stream"] {
        let cost = row(sent, "durable").cpu_us - row(sent, "in memory").cpu_us;
        figure.claim(&format!("{of_what}{sent}, {callers}: server CPU of durability"), None, cost, " µs");
    }
    for (_, server) in servers {
        report.answers += server.check_facts().await;
    }
}
