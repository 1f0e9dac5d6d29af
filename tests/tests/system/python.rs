//! The wire contract from another language: a Python client whose stubs are made from the .proto files.

use std::{env, process::Command};

use tempfile::TempDir;
use tollgate_tests::{journal_file::python, program, review::root, sidecar::Setup};

/// The generated stubs, in a directory to import them from.
fn stubs() -> TempDir {
    let stubs = tempfile::tempdir().unwrap();
    let proto = root().join("proto");
    let mut generate = Command::new(python());
    generate.args(["-m", "grpc_tools.protoc"]).arg(format!("--proto_path={}", proto.display()));
    for out in ["--python_out", "--grpc_python_out"] {
        generate.arg(format!("{out}={}", stubs.path().display()));
    }
    generate.args(["governance", "journal", "policy"].map(|name| proto.join(format!("tollgate/v1/{name}.proto"))));
    let generated = program::run(generate);
    assert_eq!(generated.code(), 0, "{}", generated.err);
    stubs
}

#[tokio::test]
async fn a_python_client_made_from_the_proto_asks_completes_streams_and_reads() {
    let stubs = stubs();
    for listen in ["127.0.0.1:0", "unix:{dir}/data.sock"] {
        let data = format!("[{{ listen: 'unix:{{dir}}/data.sock' }}, {{ listen: '{}' }}]", listen.replace("data", "more"));
        let sidecar = Setup::new().set("listeners.data", &data).start().await;
        client(&stubs, &sidecar.announced().pop().unwrap(), &sidecar.read());
    }
}

/// Runs the client against a sidecar.
fn client(stubs: &TempDir, data: &str, read: &str) {
    let mut client = Command::new(python());
    client.arg(root().join("tests/clients/python/client.py"));
    client.args([data.trim_start_matches("http://"), read]);
    client.env("PYTHONPATH", stubs.path()).env("PYTHONDONTWRITEBYTECODE", "1").env_remove("http_proxy");
    client.env("PATH", env::var_os("PATH").unwrap_or_default());
    let ended = program::run(client);
    assert_eq!((ended.code(), ended.out.trim()), (0, "ok"), "{}", ended.err);
}
