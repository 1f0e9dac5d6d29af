//! The process runs out of file descriptors or of memory.

use std::{fs, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tollgate_client::connect;
use tollgate_tests::{
    load::Load,
    sidecar::{Setup, Sidecar, eventually},
    soak, wire,
};

use super::{settle, settle_running};

/// How many connections are tried.
const CONNECTIONS: usize = 64;

fn limit(sidecar: &Sidecar, resource: Resource, most: u64) {
    let pid = Pid::from_raw(i32::try_from(sidecar.pid()).unwrap()).unwrap();
    // The sidecar has the hard limit of this process; to lift it takes rights, to lower the soft one does not.
    prlimit(Some(pid), resource, Rlimit { current: Some(most), ..getrlimit(resource) }).unwrap();
}

/// P07: with no descriptor left, those who are connected go on, and new ones get in once there is one.
#[tokio::test]
async fn p07_without_file_descriptors_callers_go_on_and_connections_come_back() {
    let sidecar = Setup::new().start().await;
    let load = Load::start(&sidecar).await;
    load.decides(20).await;
    let open = fs::read_dir(format!("/proc/{}/fd", sidecar.pid())).unwrap().count() as u64;
    limit(&sidecar, Resource::Nofile, open + 2);
    // The kernel takes them all, and the sidecar cannot.
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(connect(&sidecar.data()).await);
    }
    load.decides(200).await;
    assert!(sidecar.log().contains("a listener cannot accept a connection"), "none is left: {}", sidecar.log());
    drop(connections);
    limit(&sidecar, Resource::Nofile, 1_024);
    eventually("a new connection that is served", async || {
        let gate = tollgate_client::Gate::new(connect(&sidecar.data()).await.ok()?);
        gate.evaluate_within(wire::call(&wire::run(), "desk.read", "{}"), Duration::from_secs(5)).await.ok().map(drop)
    })
    .await;
    load.decides(20).await;
    let told = load.stop().await;
    settle_running(sidecar, &told).await;
}

/// P05: a process that gets no more memory may end; nothing that it said is lost by that.
#[tokio::test]
async fn p05_without_memory_nothing_that_was_told_is_lost() {
    for round in 0..soak::count(2, 30) {
        let mut sidecar = Setup::new().start().await;
        let load = Load::start(&sidecar).await;
        load.decides(20).await;
        let status = fs::read_to_string(format!("/proc/{}/status", sidecar.pid())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.split_whitespace().next()?.parse::<u64>().ok());
        limit(&sidecar, Resource::As, size.unwrap() * 512 + 65_536 * round as u64);
        // Less than it has, so that it gets no more. Large arguments, many at once: either they are answered, or it ends.
        let mut large = tokio::task::JoinSet::new();
        for _ in 0..256 {
            let gate = sidecar.gate_if_any().await;
            let arguments = format!("{{\"note\": \"{}\"}}", "n".repeat(500_000));
            large.spawn(async move {
                let Some(gate) = gate else { return };
                let call = wire::call(&wire::run(), "desk.read", &arguments);
                drop(gate.evaluate_within(call, Duration::from_secs(2)).await);
            });
        }
        large.join_all().await;
        let ended = sidecar.has_ended();
        let told = load.stop().await;
        soak::report(&[("ends for want of memory", usize::from(ended))]);
        settle(sidecar.kill(), &told).await;
    }
}
