//! The servers that the product is measured against: itself on a journal in memory, which the program refuses to
//! serve from, and a service of the same shape that answers without asking anybody.
//!
//! Built like the program: the same crates, put together alike, on the same runtime.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark may panic")]

mod echo;
mod sidecar;

/// The program's own clocks and ids.
#[path = "../../../../../crates/tollgate/src/world.rs"]
#[expect(dead_code, reason = "the program needs more of the world")]
mod world;

use std::{env, net::SocketAddr, path::PathBuf, sync::Arc};

use tollgate_journal::MemoryJournal;

/// As the program's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As the program's.
const STACK_BYTES: usize = 16 * 1_048_576;

/// Where a server listens and what it reads.
#[derive(Debug)]
struct Place {
    /// Of the state and the sockets.
    directory: PathBuf,
    bundle: PathBuf,
    tcp: SocketAddr,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, directory, bundle, tcp] = arguments.as_slice() else {
        panic!("usage: tollgate-bench-server memory|sqlite|echo DIRECTORY BUNDLE ADDRESS:PORT");
    };
    let place = Place { directory: directory.into(), bundle: bundle.into(), tcp: tcp.parse().unwrap() };
    let kind = kind.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(STACK_BYTES).build().unwrap();
    let thread = std::thread::Builder::new().name("tollgate".to_owned()).stack_size(STACK_BYTES);
    let serving = thread.spawn(move || {
        runtime.block_on(async move {
            match kind.as_str() {
                "memory" => sidecar::serve(&place, Arc::new(MemoryJournal::new())).await,
                "sqlite" => sidecar::serve(&place, Arc::new(sidecar::sqlite(&place).await)).await,
                "echo" => echo::serve(&place).await,
                other => panic!("{other}?"),
            }
        });
    });
    serving.unwrap().join().unwrap();
}
