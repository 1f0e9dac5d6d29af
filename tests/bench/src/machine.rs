//! What the kernel says: how busy the machine was and with whose work, and what a process used.

use std::{fs, time::Duration};

/// The unit of `/proc/stat`, which is the same on every Linux that this runs on.
const TICK: Duration = Duration::from_millis(10);

/// CPU time used until now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// By everybody, on all cores.
    pub(crate) machine: Duration,
    /// By the server that is measured.
    pub(crate) server: Duration,
    /// By this process.
    client: Duration,
}

impl Used {
    pub(crate) fn now(server: &[u32]) -> Self {
        Self {
            machine: machine_time(),
            server: server.iter().map(|pid| process_time(*pid)).sum(),
            client: process_time(std::process::id()),
        }
    }

    /// What somebody else used since, as a share of all cores.
    pub(crate) fn foreign_since(&self, before: &Self, elapsed: Duration) -> f64 {
        let own = (self.server + self.client).saturating_sub(before.server + before.client);
        let foreign = self.machine.saturating_sub(before.machine).saturating_sub(own);
        foreign.as_secs_f64() / (elapsed.as_secs_f64() * cores())
    }
}

/// What a process holds in memory, in MiB.
pub(crate) fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1_024.0
}

/// What this machine is, in a line.
pub(crate) fn description() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("a CPU", |(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} × {model}, Linux {}", cores(), kernel.trim())
}

#[expect(clippy::cast_precision_loss, reason = "a count of cores")]
fn cores() -> f64 {
    std::thread::available_parallelism().unwrap().get() as f64
}

fn machine_time() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u32> = stat.lines().next().unwrap().split_whitespace().skip(1).map(|field| field.parse().unwrap()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let busy = [0, 1, 2, 5, 6, 7].into_iter().map(|index| fields[index]).sum::<u32>();
    TICK * busy
}

/// What the threads of a process used that still run, to the nanosecond.
fn process_time(pid: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    let times = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}
