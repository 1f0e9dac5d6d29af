//! The same mix of questions put to a Cerbos server, over gRPC, with the same rules.

use std::{cell::Cell, collections::HashMap, fs, net::SocketAddr, path::Path, process::Command, time::Instant};

use futures_util::future::join_all;
use prost_types::{Value, value::Kind};
use tempfile::TempDir;
use tollgate_client::connect;
use tollgate_tests::trees::{Tree, write};
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};
use tonic_prost::ProstCodec;

use crate::{
    calls::MIX,
    load::Log,
    servers::{self, Process, free_port},
};

const METHOD: &str = "/cerbos.svc.v1.CerbosService/CheckResources";

/// A Cerbos server that serves; killed when dropped.
#[derive(Debug)]
pub(crate) struct Cerbos {
    process: Process,
    address: SocketAddr,
    asked: Cell<u64>,
    directory: TempDir,
}

impl Cerbos {
    pub(crate) async fn start(program: &Path, policies: &Tree, audits: bool) -> Self {
        let directory = servers::directory();
        write(policies, &directory.path().join("policies"));
        let (address, http) = (free_port(), free_port());
        let place = directory.path().display();
        let config = format!(
            "server: {{ grpcListenAddr: '{address}', httpListenAddr: '{http}' }}\n\
             storage: {{ driver: disk, disk: {{ directory: {place}/policies, watchForChanges: false }} }}\n\
             audit: {{ enabled: {audits}, backend: file, file: {{ path: {place}/audit.log }} }}\n\
             telemetry: {{ disabled: true }}\n"
        );
        let config_path = directory.path().join("cerbos.yaml");
        fs::write(&config_path, config).unwrap();
        let mut command = Command::new(program);
        command.args(["server", "--log-level=ERROR"]).arg(format!("--config={}", config_path.display()));
        let process = Process::start(&mut command);
        servers::until_serving(&format!("http://{address}")).await;
        Self { process, address, asked: Cell::new(0), directory }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) async fn connections(&self, count: usize) -> Vec<Channel> {
        join_all((0..count).map(async |_| connect(&format!("http://{}", self.address)).await.unwrap())).await
    }

    /// Callers that ask one question each, spread over the connections.
    pub(crate) async fn unary(&self, connections: &[Channel], callers: usize, log: &Log, until: Instant) {
        let callers = (0..callers).map(async |number| {
            let mut client = Grpc::new(connections[number % connections.len()].clone());
            while Instant::now() < until {
                let (request, expected) = self.question();
                let asked = Instant::now();
                client.ready().await.unwrap();
                let method = PathAndQuery::from_static(METHOD);
                let codec: ProstCodec<CheckResourcesRequest, CheckResourcesResponse> = ProstCodec::default();
                let answer = client.unary(Request::new(request), method, codec).await.unwrap().into_inner();
                log.answered(asked);
                assert_eq!(answer.results[0].actions.get("invoke"), Some(&expected), "the rules are the same");
            }
        });
        join_all(callers).await;
    }

    /// How much it wrote down of what it was asked.
    pub(crate) fn audit_bytes(&self) -> u64 {
        fs::metadata(self.directory.path().join("audit.log")).map_or(0, |file| file.len())
    }

    fn question(&self) -> (CheckResourcesRequest, i32) {
        let number = self.asked.replace(self.asked.get() + 1);
        let (tool, expected) = if number % MIX == MIX - 1 { ("desk.write", DENY) } else { ("desk.read", ALLOW) };
        let attributes = [("attempt", Kind::NumberValue(1.0)), ("interactive", Kind::BoolValue(false))];
        let attr = attributes.map(|(name, kind)| (name.to_owned(), Value { kind: Some(kind) })).into();
        let resource = Resource { kind: tool.to_owned(), id: number.to_string(), attr };
        let request = CheckResourcesRequest {
            request_id: uuid::Uuid::now_v7().to_string(),
            principal: Some(Principal { id: "bench-agent".to_owned(), roles: vec!["agent".to_owned()] }),
            resources: vec![ResourceEntry { actions: vec!["invoke".to_owned()], resource: Some(resource) }],
        };
        (request, expected)
    }
}

const ALLOW: i32 = 1;
const DENY: i32 = 2;

// Of its contract, cerbos.svc.v1, only what is asked here.

#[derive(Clone, PartialEq, prost::Message)]
struct CheckResourcesRequest {
    #[prost(string, tag = "1")]
    request_id: String,
    #[prost(message, optional, tag = "3")]
    principal: Option<Principal>,
    #[prost(message, repeated, tag = "4")]
    resources: Vec<ResourceEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Principal {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, repeated, tag = "3")]
    roles: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceEntry {
    #[prost(string, repeated, tag = "1")]
    actions: Vec<String>,
    #[prost(message, optional, tag = "2")]
    resource: Option<Resource>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    id: String,
    #[prost(map = "string, message", tag = "4")]
    attr: HashMap<String, Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CheckResourcesResponse {
    #[prost(message, repeated, tag = "2")]
    results: Vec<ResultEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResultEntry {
    #[prost(map = "string, int32", tag = "2")]
    actions: HashMap<String, i32>,
}
