//! Addresses and connections.

use std::{path::PathBuf, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A sidecar cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("{0:?} is no address: write http://HOST:PORT or unix:PATH")]
    Address(String),
    /// Nobody answers there.
    #[error("cannot reach a sidecar at {address}")]
    Unreachable {
        /// The address.
        address: String,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
}

/// Connects to `http://HOST:PORT` or `unix:PATH`.
pub async fn connect(address: &str) -> Result<Channel, ConnectError> {
    let unreachable = |source| ConnectError::Unreachable { address: address.to_owned(), source };
    if let Some(path) = address.strip_prefix("unix:") {
        let path: Arc<PathBuf> = Arc::new(PathBuf::from(path));
        // The URI is required by HTTP/2 and names nothing.
        let endpoint = Endpoint::from_static("http://tollgate.local").connect_timeout(CONNECT_TIMEOUT);
        let connector = tower::service_fn(move |_: Uri| {
            let path = Arc::clone(&path);
            async move { UnixStream::connect(&*path).await.map(TokioIo::new) }
        });
        return endpoint.connect_with_connector(connector).await.map_err(unreachable);
    }
    if !address.starts_with("http://") {
        return Err(ConnectError::Address(address.to_owned()));
    }
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| ConnectError::Address(address.to_owned()))?;
    endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true).connect().await.map_err(unreachable)
}
