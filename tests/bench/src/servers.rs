//! The servers that are measured, each a process of its own with its state on the disk that is measured.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tollgate_client::{Gate, connect, journal, v1};
use tollgate_tests::trees::{Tree, publish};
use tonic::transport::Channel;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    calls::{Calls, Kind},
    machine::{self, Used},
};

/// How long a server may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const POLL: Duration = Duration::from_millis(1);
/// Connections of a load of many callers.
pub(crate) const CONNECTIONS: usize = 4;

/// Which program answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `tollgate serve`.
    Product,
    /// The same crates on a journal in memory.
    Memory,
    /// The same crates on the same journal: what shows that the one above is a fair measure.
    Sqlite,
    /// Nothing behind the wire.
    Echo,
}

/// Which door a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Tcp,
    Unix,
}

/// A server that serves; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) calls: Calls,
    pub(crate) start: Start,
    process: Process,
    tcp: SocketAddr,
    /// The position of the last fact before the first call; absent where there are no facts.
    facts_before: Option<u64>,
    directory: TempDir,
}

/// How a start went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Until it served.
    pub(crate) took: Duration,
    /// The share of all cores that others took meanwhile.
    pub(crate) foreign: f64,
}

/// A process that does not outlive its measure.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Self(started.unwrap_or_else(|error| panic!("{} cannot be run: {error}", command.get_program().display())))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends it in order.
    fn stop(mut self) {
        rustix::process::kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success(), "it ends in order");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Server {
    /// Starts a program on a bundle in a directory of its own.
    pub(crate) async fn start(program: Program, bundle: &Tree, kind: Kind) -> Self {
        let directory = directory();
        publish(bundle, &directory.path().join("policies"), 1);
        Self::start_in(program, directory, kind).await
    }

    /// Ends it and starts it again with what it left.
    pub(crate) async fn again(self, program: Program, kind: Kind) -> Self {
        let Self { process, directory, .. } = self;
        process.stop();
        Self::start_in(program, directory, kind).await
    }

    async fn start_in(program: Program, directory: TempDir, kind: Kind) -> Self {
        let tcp = free_port();
        let (begun, used) = (Instant::now(), Used::now(&[]));
        let process = Process::start(&mut command(program, directory.path(), tcp));
        until_serving(&unix_address(directory.path())).await;
        let took = begun.elapsed();
        let start = Start { took, foreign: Used::now(&[process.id()]).foreign_since(&used, took) };
        let mut server = Self { calls: Calls::new(kind), start, process, tcp, facts_before: None, directory };
        if program != Program::Echo {
            server.facts_before = Some(server.position().await - server.calls.facts());
        }
        server
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn resident_mib(&self) -> f64 {
        machine::resident_mib(self.pid())
    }

    pub(crate) fn policies(&self) -> PathBuf {
        self.directory.path().join("policies")
    }

    /// One connection for one caller, four for more.
    pub(crate) async fn connections(&self, door: Door, callers: usize) -> Vec<Channel> {
        let mut connections = Vec::new();
        while connections.len() < callers.min(CONNECTIONS) {
            connections.push(self.connection(door).await);
        }
        connections
    }

    async fn connection(&self, door: Door) -> Channel {
        connect(&self.address(door)).await.unwrap()
    }

    fn address(&self, door: Door) -> String {
        match door {
            Door::Tcp => format!("http://{}", self.tcp),
            Door::Unix => unix_address(self.directory.path()),
        }
    }

    /// The facts of the last runs that were asked about, those of the last first.
    pub(crate) async fn last_facts(&self, runs: usize) -> Vec<v1::Fact> {
        let read = format!("unix:{}", self.directory.path().join("state/read.sock").display());
        let mut journal = journal(connect(&read).await.unwrap());
        let mut facts = Vec::new();
        for run in self.calls.last_runs().take(runs) {
            let request = v1::ListFactsRequest { run: Some(run), limit: 200, ..Default::default() };
            facts.extend(journal.list_facts(request).await.unwrap().into_inner().facts);
        }
        facts
    }

    /// Counts the journal against the answers: it has as many facts as they stand on. Tells how many decisions.
    pub(crate) async fn check_facts(&self) -> u64 {
        if let Some(before) = self.facts_before {
            assert_eq!(
                self.position().await - before,
                self.calls.facts(),
                "the journal has as many facts as the answers stand on"
            );
        }
        self.calls.answered()
    }

    /// The number of the generation that decides.
    pub(crate) async fn generation(&self) -> u64 {
        self.ask().await.generation.unwrap().number
    }

    async fn ask(&self) -> v1::EvaluateResponse {
        let call = self.calls.next();
        let answer = Gate::new(self.connection(Door::Unix).await).evaluate(call.request).await.unwrap();
        self.calls.check(answer.response(), call.expected);
        answer.response().clone()
    }

    /// The position of the last fact: every one has its own, without gaps.
    async fn position(&self) -> u64 {
        self.ask().await;
        let facts = self.last_facts(1).await;
        facts.last().expect("the call is on record").position
    }
}

/// Makes a directory on the disk that is measured.
pub(crate) fn directory() -> TempDir {
    let parent = built().join("../bench");
    fs::create_dir_all(&parent).unwrap();
    tempfile::tempdir_in(fs::canonicalize(parent).unwrap()).unwrap()
}

/// An address that nobody listens on.
pub(crate) fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn unix_address(directory: &Path) -> String {
    format!("unix:{}", directory.join("data.sock").display())
}

/// Where this program was built, and the others beside it.
pub(crate) fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn command(program: Program, directory: &Path, tcp: SocketAddr) -> Command {
    let policies = directory.join("policies");
    let kind = match program {
        Program::Product => {
            let mut command = Command::new(built().join("tollgate"));
            command.args(["serve", "--log-level", "error", "--policy-dir"]).arg(policies);
            command.arg("--state-dir").arg(directory.join("state"));
            command.arg(format!("--data-listen={tcp},unix:{}", directory.join("data.sock").display()));
            return command;
        }
        Program::Memory => "memory",
        Program::Sqlite => "sqlite",
        Program::Echo => "echo",
    };
    let mut command = Command::new(built().join("tollgate-bench-server"));
    command.arg(kind).args([directory, &policies]).arg(tcp.to_string());
    command
}

/// Waits until a server says over gRPC that it serves.
pub(crate) async fn until_serving(address: &str) {
    let serves = async || {
        let mut client = HealthClient::new(connect(address).await.ok()?);
        loop {
            let health = client.check(HealthCheckRequest::default()).await.ok()?.into_inner();
            if health.status() == ServingStatus::Serving {
                return Some(());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let serving = async {
        while serves().await.is_none() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, serving).await.expect("a server serves within its time");
}
