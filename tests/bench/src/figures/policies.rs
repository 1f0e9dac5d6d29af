//! What a policy costs that can match, and one that cannot.

use std::time::Duration;

use tollgate_client::v1::{Fact, fact::Body};

use super::{Way, variant};
use crate::{
    bundles::{COMMON_POLICIES, Reach, bundle},
    calls::Kind,
    contest::{self, Pace, median},
    report::{Goal, Report},
    servers::{Door, Program, Server},
};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const CALLERS: usize = 8;

pub(super) async fn measure(pace: Pace, report: &mut Report) {
    let few = reach(pace, report, Reach::Elsewhere, "few of").await;
    let many = reach(pace, report, Reach::Everywhere, "all").await;
    let foreign = few.iter().chain(&many).map(|cost| cost.foreign).fold(0.0, f64::max);
    let mut figure = report.figure_beside('d', foreign);
    let ratio = |of: fn(&Cost) -> f64| of(&few[3]) / of(&few[1]);
    figure.claim("few can match: CPU at 10,000 / at 100", Goal::AtMost(2.0), ratio(|cost| cost.cpu_us), "");
    figure.claim("few can match: time of the hook at 10,000 / at 100", Goal::AtMost(2.0), ratio(|cost| cost.hook_us), "");
    for ((few, many), size) in few.iter().zip(&many).zip(SIZES).skip(1) {
        #[expect(clippy::cast_precision_loss, reason = "a count of policies")]
        let each = (many.cpu_us - few.cpu_us) / (size - COMMON_POLICIES) as f64;
        figure.claim(&format!("all can match: CPU for each more of {size}"), Goal::AtMost(1.0), each, " µs");
    }
}

struct Cost {
    cpu_us: f64,
    /// The median of what the server itself says of its one hook.
    hook_us: f64,
    foreign: f64,
}

async fn reach(pace: Pace, report: &mut Report, reach: Reach, which: &str) -> Vec<Cost> {
    let mut servers = Vec::new();
    for size in SIZES {
        // In memory, so that no disk is in it.
        servers.push(Server::start(Program::Memory, &bundle(size, reach, 0), Kind::Read).await);
    }
    let mut variants = Vec::new();
    for (server, size) in servers.iter().zip(SIZES) {
        let name = format!("{which} {size} policies can match, in memory");
        variants.push(variant(&name, server, Door::Tcp, Way::Unary, CALLERS).await);
    }
    let rows = contest::run('d', pace, &variants).await;
    let mut costs = Vec::new();
    for (server, row) in servers.iter().zip(&rows) {
        let hook_us = median(server.last_facts(usize::MAX).await.iter().filter_map(hook_us).collect());
        report.answers += server.check_facts().await;
        costs.push(Cost { cpu_us: row.cpu_us, hook_us, foreign: row.foreign });
    }
    let mut figure = report.figure('d', &rows);
    for (cost, size) in costs.iter().zip(SIZES) {
        figure.claim(&format!("{which} {size} can match: time of the hook"), None, cost.hook_us, " µs");
    }
    costs
}

fn hook_us(fact: &Fact) -> Option<f64> {
    let Some(Body::GovernanceEvaluated(evaluated)) = &fact.body else { return None };
    let duration = Duration::try_from(evaluated.hooks.first()?.duration?).ok()?;
    Some(duration.as_secs_f64() * 1e6)
}
