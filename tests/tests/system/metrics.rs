//! What Prometheus scrapes.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use tollgate_tests::{
    sidecar::{Setup, eventually},
    trees, wire,
};

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// What is scraped.
pub(crate) async fn scrape(port: u16) -> String {
    eventually("metrics", async || {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        Some(text)
    })
    .await
}

/// The value of a sample; 0 where it is not there.
pub(crate) fn value(text: &str, sample: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn decisions_generations_and_durations_are_counted_and_described() {
    let port = free_port();
    let setup = Setup::new().set("metrics.listen", &format!("127.0.0.1:{port}"));
    let sidecar = setup.start().await;
    let (gate, run) = (sidecar.gate().await, wire::run());
    for (tool, arguments) in
        [("desk.read", "{}"), ("desk.read", "{}"), ("desk.write", "{}"), ("pay.send", r#"{"count":9223372036854775807}"#)]
    {
        drop(gate.evaluate(wire::call(&run, tool, arguments)).await.unwrap());
    }
    trees::write(&trees::with(trees::gate(), &[("hooks/desk/hook.yaml", "id: desk\n")]), &sidecar.setup().bundle());
    eventually("a refusal", async || sidecar.status().await.last_error).await;

    let text = scrape(port).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for (sample, expected) in [
        ("tollgate_decisions_total{decision=\"allow\"}", 2),
        ("tollgate_decisions_total{decision=\"deny\"}", 1),
        ("tollgate_decisions_total{decision=\"failed\"}", 1),
        ("tollgate_generation_changes_total{result=\"activated\"}", 1),
        ("tollgate_generation_changes_total{result=\"refused\"}", 1),
        ("tollgate_generation_number", 1),
        ("tollgate_ready", 1),
        ("tollgate_evaluate_seconds_count", 4),
    ] {
        assert_eq!(value(&text, sample), expected, "{sample} in\n{text}");
    }
    for name in ["tollgate_decisions_total counter", "tollgate_generation_number gauge", "tollgate_evaluate_seconds histogram"] {
        assert!(text.contains(&format!("# TYPE {name}")), "{name} in\n{text}");
    }
}
