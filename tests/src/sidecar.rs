//! A real sidecar in a directory of its own, with a bundle and a configuration to vary.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tollgate_client::{
    Gate, connect, journal, policy,
    v1::{self, journal_service_client::JournalServiceClient, policy_service_client::PolicyServiceClient},
};
use tonic::transport::Channel;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    program,
    tmpfs::Tmpfs,
    trees::{self, Tree},
};

/// How long something may take that must come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked for.
const POLL: Duration = Duration::from_millis(20);

/// Waits until a probe finds something; fails after half a minute.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// What a sidecar is started with: a directory with its bundle, its configuration and its state. It stays
/// when the sidecar ends, for the next.
#[derive(Debug)]
pub struct Setup {
    /// Before the directory, since it is unmounted before that is removed.
    disk: Option<Tmpfs>,
    directory: TempDir,
    /// Section, key, value in YAML.
    keys: BTreeMap<String, BTreeMap<String, String>>,
    variables: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Setup {
    /// The bundle of [`trees::gate`], both doors on Unix sockets, everything else as by default.
    #[must_use]
    pub fn new() -> Self {
        Self::of(&trees::gate())
    }

    /// As [`Setup::new`], with another bundle.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let setup = Self::without_bundle();
        trees::write(tree, &setup.bundle());
        setup
    }

    /// As [`Setup::new`], without any bundle.
    #[must_use]
    pub fn without_bundle() -> Self {
        let directory = tempfile::Builder::new().prefix("tollgate-").tempdir().unwrap();
        Self { disk: None, directory, keys: BTreeMap::new(), variables: Vec::new(), flags: Vec::new() }
            .set("policy.settle", "50ms")
            .set("listeners.data", "[{ listen: 'unix:{dir}/data.sock' }]")
            .set("listeners.read", "[{ listen: 'unix:{dir}/read.sock' }]")
            .set("shutdown.drain", "5s")
    }

    /// Puts its state on a file system of its own, where this user may mount one.
    #[must_use]
    pub fn on_tmpfs(mut self, megabytes: u32) -> Option<Self> {
        self.disk = Some(Tmpfs::mount(&self.state(), megabytes)?);
        Some(self)
    }

    /// The file system that its state is on.
    #[must_use]
    pub fn disk(&self) -> &Tmpfs {
        self.disk.as_ref().expect("it was put on one")
    }

    /// Sets `section.key` to a value in YAML, in which `{dir}` is the directory.
    #[must_use]
    pub fn set(mut self, key: &str, yaml: &str) -> Self {
        let (section, key) = key.split_once('.').expect("section.key");
        let value = yaml.replace("{dir}", &self.directory.path().display().to_string());
        self.keys.entry(section.to_owned()).or_default().insert(key.to_owned(), value);
        self
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a flag of `serve`.
    #[must_use]
    pub fn flag(mut self, flag: &str, value: &str) -> Self {
        self.flags.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the bundle is.
    #[must_use]
    pub fn bundle(&self) -> PathBuf {
        self.directory().join("policies")
    }

    /// Where the sidecar keeps what is its own.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.directory().join("state")
    }

    /// The journal.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.state().join("journal.db")
    }

    /// Starts the sidecar and waits until it serves.
    pub async fn start(self) -> Sidecar {
        let mut sidecar = self.spawn();
        sidecar.wait_until_serving().await;
        sidecar
    }

    /// Starts the sidecar and waits until its ports are open, with or without a generation.
    pub async fn open(self) -> Sidecar {
        let mut sidecar = self.spawn();
        eventually("open ports", async || sidecar.still_running().contains(" serves").then_some(())).await;
        sidecar
    }

    /// Runs a sidecar that is expected to refuse its start.
    #[must_use]
    pub fn run(&self) -> program::Ended {
        program::run(self.command())
    }

    /// The command that starts it, with the configuration written.
    #[must_use]
    pub fn command(&self) -> std::process::Command {
        let config = self.directory().join("tollgate.yaml");
        fs::write(&config, self.yaml()).unwrap();
        let mut command = program::command(["serve", "--config"]);
        command.arg(config).args(&self.flags).envs(self.variables.iter().cloned());
        command
    }

    fn yaml(&self) -> String {
        let (state, bundle) = (self.state(), self.bundle());
        let mut text = format!("state_dir: {}\n", state.display());
        let mut keys = self.keys.clone();
        keys.entry("policy".to_owned())
            .or_default()
            .entry("directory".to_owned())
            .or_insert_with(|| bundle.display().to_string());
        for (section, keys) in keys {
            writeln!(text, "{section}:").unwrap();
            for (key, value) in keys {
                writeln!(text, "  {key}: {value}").unwrap();
            }
        }
        text
    }

    /// Starts the sidecar and waits for nothing.
    #[must_use]
    pub fn spawn(self) -> Sidecar {
        let log = File::options().create(true).append(true).open(self.directory().join("log")).unwrap();
        let log_start = usize::try_from(log.metadata().unwrap().len()).unwrap();
        let mut command = self.command();
        let process = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Sidecar { process, setup: Some(self), log_start }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

/// A sidecar that runs; killed when dropped.
#[derive(Debug)]
pub struct Sidecar {
    process: Child,
    /// Taken when it ends.
    setup: Option<Setup>,
    log_start: usize,
}

impl Sidecar {
    /// What it was started with.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        self.setup.as_ref().unwrap()
    }

    /// The address of its data door.
    #[must_use]
    pub fn data(&self) -> String {
        format!("unix:{}/data.sock", self.setup().directory().display())
    }

    /// The address of its read door.
    #[must_use]
    pub fn read(&self) -> String {
        format!("unix:{}/read.sock", self.setup().directory().display())
    }

    /// The addresses of its data door as it announced them when it started.
    #[must_use]
    pub fn announced(&self) -> Vec<String> {
        let log = self.log();
        let (_, rest) = log.split_once(" data=\"").expect("the addresses are announced");
        let (addresses, _) = rest.split_once('"').unwrap();
        addresses.split(' ').map(ToOwned::to_owned).collect()
    }

    /// A client of the data door, over a connection of its own.
    pub async fn gate(&self) -> Gate {
        Gate::new(connect(&self.data()).await.expect("the data door answers"))
    }

    /// As [`Sidecar::gate`], where the data door answers.
    pub async fn gate_if_any(&self) -> Option<Gate> {
        Some(Gate::new(connect(&self.data()).await.ok()?))
    }

    /// A client of the journal.
    pub async fn journal(&self) -> JournalServiceClient<Channel> {
        journal(connect(&self.read()).await.expect("the read door answers"))
    }

    /// A client of the status of policy.
    pub async fn policy(&self) -> PolicyServiceClient<Channel> {
        policy(connect(&self.read()).await.expect("the read door answers"))
    }

    /// The status of policy.
    pub async fn status(&self) -> v1::GetStatusResponse {
        self.policy().await.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner()
    }

    /// The generation that decides.
    pub async fn generation(&self) -> v1::GenerationRef {
        self.status().await.active.expect("a generation is active").generation.unwrap()
    }

    /// What the data door says of a service's health.
    pub async fn health(&self, service: &str) -> Option<ServingStatus> {
        let mut client = HealthClient::new(connect(&self.data()).await.ok()?);
        let request = HealthCheckRequest { service: service.to_owned() };
        Some(client.check(request).await.ok()?.into_inner().status())
    }

    /// Waits until the data door says this of the sidecar.
    pub async fn until_health(&self, status: ServingStatus) {
        eventually(status.as_str_name(), async || (self.health("").await == Some(status)).then_some(())).await;
    }

    /// Every fact of a run over the read door; fails where they are more than a page has.
    pub async fn facts(&self, run: &v1::RunKey) -> Vec<v1::Fact> {
        let request = v1::ListFactsRequest { run: Some(run.clone()), limit: 200, ..Default::default() };
        let page = self.journal().await.list_facts(request).await.unwrap().into_inner();
        assert_eq!(page.next, None, "a page holds them all");
        page.facts
    }

    /// What it logged since its start.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.setup().directory().join("log")).unwrap();
        String::from_utf8_lossy(log.get(self.log_start..).unwrap()).into_owned()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the data door says that it serves.
    pub async fn wait_until_serving(&mut self) {
        let what = "SERVING";
        eventually(what, async || {
            let _ = self.still_running();
            (self.health("").await == Some(ServingStatus::Serving)).then_some(())
        })
        .await;
    }

    /// Waits until it serves, or has ended; which of the two.
    pub async fn serves_or_ends(&mut self) -> bool {
        eventually("SERVING, or the end", async || {
            let ended = self.process.try_wait().unwrap().map(|_| false);
            let serves = (self.health("").await == Some(ServingStatus::Serving)).then_some(true);
            ended.or(serves)
        })
        .await
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Kills it with SIGKILL; the next start finds everything as it was.
    #[must_use]
    pub fn kill(mut self) -> Setup {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.setup.take().unwrap()
    }

    /// Ends it with SIGTERM.
    pub async fn stop(self) -> (ExitStatus, Setup) {
        self.signal(rustix::process::Signal::TERM);
        self.ended().await
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> (ExitStatus, Setup) {
        let status = eventually("the end of the sidecar", async || self.process.try_wait().unwrap()).await;
        (status, self.setup.take().unwrap())
    }

    fn still_running(&mut self) -> String {
        let log = self.log();
        if let Some(status) = self.process.try_wait().unwrap() {
            panic!("the sidecar ended with {status}:\n{log}");
        }
        log
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        if std::thread::panicking()
            && let Some(setup) = &self.setup
        {
            let log = fs::read_to_string(setup.directory().join("log")).unwrap_or_default();
            let end: Vec<String> = log.lines().rev().take(20).map(|line| line.chars().take(300).collect()).collect();
            eprintln!("the end of the sidecar's log:\n{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}
