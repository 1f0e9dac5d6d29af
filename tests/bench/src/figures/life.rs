//! Beyond the single call: swaps under load, starts, and memory.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tollgate_tests::trees::publish;

use super::{Way, main_bundle, of, variant};
use crate::{
    bundles::{self, Reach, bundle},
    calls::Kind,
    contest::{self, Pace, Variant, median},
    report::{Goal, Report},
    servers::{Door, Program, Server},
};

const SWAP_EVERY: Duration = Duration::from_millis(200);
const SWAPPED_POLICIES: usize = 1_000;
/// So that a slice sees several swaps.
const SWAP_SLICE: Duration = Duration::from_secs(2);
/// What the last swap of a slice may still take before the next slice.
const CALM: Duration = Duration::from_millis(500);
const STARTS: usize = 5;
/// After which a server that is asked nothing is idle.
const IDLE: Duration = Duration::from_secs(1);

pub(super) async fn swaps(pace: Pace, report: &mut Report) {
    let server = Server::start(Program::Product, &bundle(SWAPPED_POLICIES, Reach::Elsewhere, 0), Kind::Read).await;
    let published = Arc::new(AtomicU64::new(1));
    let before = server.generation().await;
    for callers in [8, 64] {
        let (steady, swapped) = (format!("unary, {callers}: steady"), format!("unary, {callers}: a swap every 200 ms"));
        let calm = variant(&steady, &server, Door::Tcp, Way::Unary, callers).await;
        let load = variant(&swapped, &server, Door::Tcp, Way::Unary, callers).await.slice;
        let swapping = |length| {
            let (load, swaps) = (load(length), Swaps::start(server.policies(), Arc::clone(&published)));
            Box::pin(async move {
                let sample = load.await;
                swaps.stop();
                tokio::time::sleep(CALM).await;
                sample
            }) as _
        };
        let variants = [calm, Variant { name: swapped.clone(), slice: Box::new(swapping) }];
        let rows = contest::run('f', Pace { slice: SWAP_SLICE, ..pace }, &variants).await;
        let ratio = of(&rows, &swapped).p99_us / of(&rows, &steady).p99_us;
        report.figure('f', &rows).claim(&format!("unary, {callers}: p99 while swapping / steady"), Goal::AtMost(1.5), ratio, "");
    }
    let (active, offered) = (server.generation().await - before, published.load(Ordering::Relaxed) - 1);
    report.notes.push(format!("(f) {active} of {offered} bundles of {SWAPPED_POLICIES} policies were activated under load."));
}

/// A thread that publishes one bundle after the other.
struct Swaps {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Swaps {
    fn start(directory: PathBuf, published: Arc<AtomicU64>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let number = published.fetch_add(1, Ordering::Relaxed);
                let tree = bundle(SWAPPED_POLICIES, Reach::Elsewhere, number);
                publish(&tree, &directory, u32::try_from(number).unwrap() + 1);
                thread::sleep(SWAP_EVERY);
            }
        });
        Self { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

pub(super) async fn starts(pace: Pace, report: &mut Report) {
    let bundles = [
        ("sample bundle", bundles::sample(), Kind::Sample, None),
        ("100 policies", main_bundle(), Kind::Read, Some(Goal::AtMost(100.0))),
        ("10,000 policies", bundle(10_000, Reach::Elsewhere, 0), Kind::Read, Some(Goal::AtMost(1_500.0))),
    ];
    for (name, tree, kind, goal) in bundles {
        let (mut fresh, mut again, mut resident) = (Vec::new(), Vec::new(), Vec::new());
        let (mut last, mut foreign) = (None, 0.0_f64);
        for _ in 0..STARTS {
            let server = Server::start(Program::Product, &tree, kind).await;
            fresh.push(millis(server.start.took));
            foreign = foreign.max(server.start.foreign);
            let server = server.again(Program::Product, kind).await;
            again.push(millis(server.start.took));
            foreign = foreign.max(server.start.foreign);
            tokio::time::sleep(IDLE).await;
            resident.push(server.resident_mib());
            last = Some(server);
        }
        let mut figure = report.figure_beside('g', foreign);
        figure.claim(&format!("{name}: start to serving, new journal"), goal, median(fresh), " ms");
        figure.claim(&format!("{name}: start to serving, journal that is there"), goal, median(again), " ms");
        let goal = (kind == Kind::Sample).then_some(Goal::AtMost(32.0));
        figure.claim(&format!("{name}: idle resident memory"), goal, median(resident), " MiB");

        let server = last.expect("it was started");
        let load = variant(&format!("{name}, unary, 64"), &server, Door::Tcp, Way::Unary, 64).await;
        let rows = contest::run('g', pace, &[load]).await;
        tokio::time::sleep(IDLE).await;
        let (asked, resident) = (server.check_facts().await, server.resident_mib());
        report.answers += asked;
        report.figure('g', &rows).claim(&format!("{name}: resident memory after {asked} decisions"), None, resident, " MiB");
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
