//! A gate that answers ALLOW at once: what the wire alone costs, with messages as long as the product's.

use tokio::net::{TcpListener, UnixListener};
use tokio_stream::{
    StreamExt,
    wrappers::{TcpListenerStream, UnixListenerStream},
};
use tollgate_client::WireTimestamp;
use tollgate_proto::v1::{
    self, evaluate_stream_request::Element, evaluate_stream_response::Answer, governance_service_server::GovernanceService,
    governance_service_server::GovernanceServiceServer,
};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use crate::Place;

/// Windows as the product's.
const STREAM_WINDOW_BYTES: u32 = 65_535;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1_048_576;

/// Serves until it is killed.
pub(crate) async fn serve(place: &Place) {
    let server = || {
        let builder = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (_, health) = tonic_health::server::health_reporter();
        let mut builder = builder;
        builder.add_service(GovernanceServiceServer::new(Echo)).add_service(health)
    };
    let tcp = TcpListenerStream::new(TcpListener::bind(place.tcp).await.unwrap()).map(|connection| {
        let connection = connection?;
        connection.set_nodelay(true)?;
        Ok::<_, std::io::Error>(connection)
    });
    let unix = UnixListenerStream::new(UnixListener::bind(place.directory.join("data.sock")).unwrap());
    let (tcp, unix) = tokio::join!(server().serve_with_incoming(tcp), server().serve_with_incoming(unix));
    tcp.and(unix).unwrap();
}

struct Echo;

#[tonic::async_trait]
impl GovernanceService for Echo {
    async fn evaluate(&self, request: Request<v1::EvaluateRequest>) -> Result<Response<v1::EvaluateResponse>, Status> {
        Ok(Response::new(allow(request.into_inner())))
    }

    type EvaluateStreamStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::EvaluateStreamResponse, Status>> + Send>>;

    async fn evaluate_stream(
        &self,
        request: Request<Streaming<v1::EvaluateStreamRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let answers = request.into_inner().map(|element| {
            let Some(Element::Evaluate(v1::StreamEvaluate { request: Some(request), .. })) = element?.element else {
                return Err(Status::invalid_argument("an element without a request"));
            };
            let (invocation_id, run) = (request.invocation_id.clone(), request.run.clone());
            let answer = Some(Answer::Response(allow(request)));
            Ok(v1::EvaluateStreamResponse { invocation_id, run, answer })
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn complete(&self, _: Request<v1::CompleteRequest>) -> Result<Response<v1::CompleteResponse>, Status> {
        Err(Status::unimplemented("this gate forgets at once"))
    }
}

fn allow(request: v1::EvaluateRequest) -> v1::EvaluateResponse {
    v1::EvaluateResponse {
        decision: v1::Decision::Allow.into(),
        tool_call_id: request.tool_call_id,
        invocation_id: request.invocation_id,
        attempt: 1,
        generation: Some(v1::GenerationRef { bundle: "bench".to_owned(), number: 1, digest: "0".repeat(64) }),
        valid_until: Some(WireTimestamp { seconds: 1_772_445_600, nanos: 123_456_000 }),
        sequence: 64,
        position: 1_000_000,
        ..Default::default()
    }
}
