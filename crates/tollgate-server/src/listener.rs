//! Where the sidecar listens: TCP addresses, and Unix sockets with mode, group and allowed peers.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::stream;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::Stream;

/// How long a listener rests when it cannot accept: without descriptors, trying again at once would only
/// keep the thread from closing some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix {
        /// Its path. A socket that nobody listens on is replaced; anything else is left alone.
        path: PathBuf,
        /// Who may connect.
        access: SocketAccess,
    },
}

/// Who may connect to a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketAccess {
    /// The socket's mode.
    pub mode: u32,
    /// The socket's group, by number.
    pub group: Option<u32>,
    /// User ids of peers that may connect; empty means all whom the mode lets in.
    pub peer_uids: Vec<u32>,
}

impl Default for SocketAccess {
    fn default() -> Self {
        Self { mode: 0o600, group: None, peer_uids: Vec::new() }
    }
}

/// A listener that is open.
#[derive(Debug)]
pub enum Bound {
    /// A TCP listener.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix {
        /// The listener.
        listener: UnixListener,
        /// Its path, removed when the door closes.
        path: PathBuf,
        /// User ids of peers that may connect; empty means all.
        peer_uids: Arc<[u32]>,
    },
}

/// A listener cannot be opened.
#[derive(Debug)]
pub enum ListenError {
    /// The address or path cannot be bound.
    Bind(String, io::Error),
    /// Another process listens on the socket.
    InUse(PathBuf),
    /// Something that is no socket stands at the path.
    NotASocket(PathBuf),
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(place, _) => write!(f, "cannot listen on {place}"),
            Self::InUse(path) => write!(f, "another process listens on {}: stop it or choose another path", path.display()),
            Self::NotASocket(path) => {
                write!(f, "{} exists and is no socket: move it away or choose another path", path.display())
            }
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind(_, source) => Some(source),
            Self::InUse(_) | Self::NotASocket(_) => None,
        }
    }
}

impl Listen {
    /// Opens the listener.
    pub async fn bind(&self) -> Result<Bound, ListenError> {
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).await.map_err(|error| ListenError::Bind(address.to_string(), error))?;
                Ok(Bound::Tcp(listener))
            }
            Self::Unix { path, access } => bind_unix(path, access),
        }
    }
}

fn bind_unix(path: &Path, access: &SocketAccess) -> Result<Bound, ListenError> {
    let failed = |error| ListenError::Bind(path.display().to_string(), error);
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(ListenError::NotASocket(path.to_owned()));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ListenError::InUse(path.to_owned()));
        }
        fs::remove_file(path).map_err(failed)?;
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    // Bound under a name of its own and moved into place, so that nobody connects before mode and group hold.
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(format!(".{}", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    let open = || {
        if let Some(group) = access.group {
            std::os::unix::fs::chown(&hidden, None, Some(group))?;
        }
        fs::set_permissions(&hidden, fs::Permissions::from_mode(access.mode))?;
        fs::rename(&hidden, path)
    };
    if let Err(error) = open() {
        drop(fs::remove_file(&hidden));
        return Err(failed(error));
    }
    Ok(Bound::Unix { listener, path: path.to_owned(), peer_uids: access.peer_uids.clone().into() })
}

impl Bound {
    /// The address, as a client writes it.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| "tcp".to_owned(), |address| format!("http://{address}")),
            Self::Unix { path, .. } => format!("unix:{}", path.display()),
        }
    }
}

/// The connections that a TCP listener accepts.
pub(crate) fn tcp_connections(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> {
    connections(async move || {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        Ok(Some(connection))
    })
}

/// The connections of allowed peers that a Unix socket accepts.
pub(crate) fn unix_connections(listener: UnixListener, peer_uids: Arc<[u32]>) -> impl Stream<Item = io::Result<UnixStream>> {
    connections(async move || {
        let (connection, _) = listener.accept().await?;
        let peer = connection.peer_cred()?.uid();
        if peer_uids.is_empty() || peer_uids.contains(&peer) {
            return Ok(Some(connection));
        }
        tracing::warn!(uid = peer, "refused a peer of the Unix socket");
        Ok(None)
    })
}

/// Accepts for ever: an error of one connection, or a lack of descriptors, is no end of the listener.
fn connections<C>(accept: impl AsyncFnMut() -> io::Result<Option<C>>) -> impl Stream<Item = io::Result<C>> {
    stream::unfold(accept, async |mut accept| {
        loop {
            match accept().await {
                Ok(Some(connection)) => return Some((Ok(connection), accept)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(kind = %error.kind(), code = error.raw_os_error(), "a listener cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}
