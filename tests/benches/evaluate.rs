//! What a decision costs, measured over the real sidecar: `cargo xtask bench` prints the table.
//!
//! The variants take turns in rounds, and the median of the rounds is told, together with the disk's
//! own floor measured in the same rounds: a loop of write and fdatasync. Client and server share the
//! machine. Nothing is asserted: a noisy machine must not fail a test.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a benchmark may panic, and reads the clock"
)]

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio_stream::wrappers::ReceiverStream;
use tollgate_client::{Answer, Gate, connect, v1};

const ROUNDS: usize = 5;
const SLICE: Duration = Duration::from_millis(800);
/// About the size of the facts of one decision.
const RECORD_BYTES: usize = 2_048;
const PROCESSES: usize = 20;

struct Sample {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

type Variant = (&'static str, Box<dyn Fn() -> Sample>);

fn main() {
    // `cargo test` builds benchmarks as tests and runs them with this flag: nothing is measured then.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let directory = tempfile::tempdir().unwrap();
    let sidecar = Sidecar::start(&root, directory.path());
    let (tcp, uds) = (sidecar.tcp.clone(), sidecar.uds.clone());
    let variants: Vec<Variant> = vec![
        ("write 2 KiB + fdatasync, one thread", {
            let path = directory.path().join("floor");
            Box::new(move || floor(&path))
        }),
        ("Evaluate, TCP, 1 caller", unary(&tcp, 1)),
        ("Evaluate, TCP, 64 callers", unary(&tcp, 64)),
        ("Evaluate, Unix socket, 1 caller", unary(&uds, 1)),
        ("Evaluate, Unix socket, 64 callers", unary(&uds, 64)),
        ("EvaluateStream, Unix socket, window 1", streamed(&uds, 1)),
        ("EvaluateStream, Unix socket, window 64", streamed(&uds, 64)),
        ("the command `tollgate evaluate`, one after the other", {
            let binary = sidecar.binary.clone();
            Box::new(move || command(&binary, &tcp))
        }),
    ];
    let mut samples: Vec<Vec<Sample>> = variants.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, measure), samples) in variants.iter().zip(&mut samples) {
            samples.push(measure());
        }
    }
    println!("| what | decisions/s | p50 µs | p99 µs | p50 / floor p50 |");
    println!("|---|---:|---:|---:|---:|");
    let median = |samples: &[Sample], of: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let p50 = |samples: &[Sample]| median(samples, |sample| sample.p50.as_secs_f64() * 1e6);
    let floor = p50(&samples[0]);
    for ((name, _), samples) in variants.iter().zip(&samples) {
        let rate = median(samples, |sample| sample.per_second);
        let p99 = median(samples, |sample| sample.p99.as_secs_f64() * 1e6);
        println!("| {name} | {rate:.0} | {:.0} | {p99:.0} | {:.1} |", p50(samples), p50(samples) / floor);
    }
}

fn floor(path: &Path) -> Sample {
    let mut file = File::create(path).unwrap();
    let record = [7; RECORD_BYTES];
    let mut latencies = Vec::new();
    let began = Instant::now();
    while began.elapsed() < SLICE {
        let sent = Instant::now();
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
        latencies.push(sent.elapsed());
    }
    sample(latencies, began.elapsed())
}

fn unary(address: &str, callers: usize) -> Box<dyn Fn() -> Sample> {
    let address = address.to_owned();
    Box::new(move || {
        on_runtime(async {
            let gate = Gate::new(connect(&address).await.unwrap());
            let began = Instant::now();
            let mut calling: FuturesUnordered<_> = (0..callers).map(|_| ask(&gate)).collect();
            let mut latencies = Vec::new();
            while let Some(latency) = calling.next().await {
                latencies.push(latency);
                if began.elapsed() < SLICE {
                    calling.push(ask(&gate));
                }
            }
            sample(latencies, began.elapsed())
        })
    })
}

async fn ask(gate: &Gate) -> Duration {
    let sent = Instant::now();
    let answer = gate.evaluate(request()).await.unwrap();
    assert!(matches!(answer, Answer::Allowed(_)), "the measured call is allowed");
    sent.elapsed()
}

fn streamed(address: &str, window: usize) -> Box<dyn Fn() -> Sample> {
    let address = address.to_owned();
    Box::new(move || {
        on_runtime(async {
            let gate = Gate::new(connect(&address).await.unwrap());
            let (elements, receiver) = tokio::sync::mpsc::channel(window);
            let mut answers = gate.raw().evaluate_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
            let began = Instant::now();
            let mut sent = std::collections::HashMap::new();
            let mut latencies = Vec::new();
            for _ in 0..window {
                send(&elements, &mut sent).await;
            }
            while !sent.is_empty() {
                let answer = answers.message().await.unwrap().unwrap();
                let at: Instant = sent.remove(&answer.invocation_id).unwrap();
                latencies.push(at.elapsed());
                if began.elapsed() < SLICE {
                    send(&elements, &mut sent).await;
                }
            }
            sample(latencies, began.elapsed())
        })
    })
}

async fn send(
    elements: &tokio::sync::mpsc::Sender<v1::EvaluateStreamRequest>,
    sent: &mut std::collections::HashMap<String, Instant>,
) {
    let request = request();
    sent.insert(request.invocation_id.clone(), Instant::now());
    let evaluate = v1::StreamEvaluate { request: Some(request), timeout: None };
    let element = Some(v1::evaluate_stream_request::Element::Evaluate(evaluate));
    elements.send(v1::EvaluateStreamRequest { element }).await.unwrap();
}

fn command(binary: &Path, address: &str) -> Sample {
    let mut latencies = Vec::new();
    let began = Instant::now();
    for _ in 0..PROCESSES {
        let sent = Instant::now();
        let mut child = Command::new(binary)
            .args(["evaluate", "--address", address, "--run", "acme/support-prod/RUN/support-agent/bench"])
            .args(["--agent", "support-agent@1", "--tool", "search.knowledge_base"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(ARGUMENTS.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        latencies.push(sent.elapsed());
    }
    sample(latencies, began.elapsed())
}

const ARGUMENTS: &str = r#"{"query":"refund policy for damaged goods"}"#;

fn request() -> v1::EvaluateRequest {
    v1::EvaluateRequest {
        run: Some(v1::RunKey {
            tenant: "acme".to_owned(),
            workspace: "support-prod".to_owned(),
            owner_kind: v1::OwnerKind::Run.into(),
            owner_id: "support-agent".to_owned(),
            run_id: "bench".to_owned(),
        }),
        agent: Some(v1::Agent { id: "support-agent".to_owned(), revision: "1".to_owned() }),
        tool: Some(v1::Tool { id: "search.knowledge_base".to_owned(), ..Default::default() }),
        tool_call_id: uuid::Uuid::now_v7().to_string(),
        invocation_id: uuid::Uuid::now_v7().to_string(),
        arguments_json: ARGUMENTS.as_bytes().to_vec().into(),
        ..Default::default()
    }
}

fn sample(mut latencies: Vec<Duration>, elapsed: Duration) -> Sample {
    latencies.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
    let per_second = latencies.len() as f64 / elapsed.as_secs_f64();
    Sample { per_second, p50: latencies[latencies.len() / 2], p99: latencies[latencies.len() * 99 / 100] }
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

struct Sidecar {
    binary: PathBuf,
    tcp: String,
    uds: String,
    child: Child,
}

impl Sidecar {
    fn start(root: &Path, directory: &Path) -> Self {
        let binary = root.join("target/release/tollgate");
        let socket = directory.join("data.sock");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(&binary)
            .args(["serve", "--log-level", "error", "--state-dir"])
            .arg(directory.join("state"))
            .arg("--policy-dir")
            .arg(root.join("policies"))
            .arg(format!("--data-listen={port},unix:{}", socket.display()))
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be run ({error}): build it first", binary.display()));
        let sidecar = Self { binary, tcp: format!("http://{port}"), uds: format!("unix:{}", socket.display()), child };
        on_runtime(async {
            for _ in 0..600 {
                if let Ok(channel) = connect(&sidecar.uds).await
                    && Gate::new(channel).evaluate(request()).await.is_ok()
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("the sidecar did not serve within 30 seconds");
        });
        sidecar
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
