//! The Kubernetes API of one node: on a Unix socket and on loopback TLS. Everything asynchronous is in this room; what it asks of
//! the node goes through a channel to the node's loop (`hub/`), which is one synchronous thread.
//!
//! | room | owns | may not |
//! |---|---|---|
//! | `route.rs`, `resource.rs` | which path means what; the table of kinds | know what a request does |
//! | `auth.rs`, `pki.rs` | who asks | decide what they may |
//! | `http.rs`, `collection.rs`, `listing.rs`, `body.rs`, `protobuf.rs`, `query.rs`, `render.rs`, `watching.rs`, `logs.rs` | bytes in, bytes out | touch the store |
//! | `exec.rs` | a program in a container, over a WebSocket | know how it gets there |
//! | `hub/` | the store, the node, the journal, what executes | wait for a client |
//! | `history/` | what ran, and who asked | decide anything |
//! | `watch.rs` | what watchers are told from | wait for a watcher |
//! | `webhooks.rs` | calls of admission webhooks | decide what an answer means |
//! | `limits.rs`, `patient.rs` | how much, how often, how long | |

mod ask;
mod auth;
mod body;
mod collection;
mod discovery;
mod exec;
mod failure;
pub mod history;
mod http;
mod hub;
mod limits;
mod linux;
mod listing;
mod logs;
mod managed;
mod metrics;
mod openapi;
mod patch;
mod patient;
mod pki;
mod protobuf;
mod query;
mod render;
mod resource;
mod reviews;
mod route;
mod selection;
mod table;
mod vault;
mod watch;
mod watching;
mod webhooks;

pub use hub::{API_STREAM, AUDIT_STREAM, Host, Listener, Waker};
pub use limits::Limits;
pub use linux::LinuxHost;

use crate::beneath;
use crate::fault::{Attempt, Fault};
use crate::layout::Layout;
use crate::volumes::write_whole;
use ask::{Ask, How, Target, What};
use auth::{Peer, Tokens};
use crossbeam_channel::{Receiver, Sender, bounded};
use discovery::Discovery;
use hub::{Hub, HubSettings};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use limits::{Rates, Recorded};
use listing::Listings;
use metrics::Metrics;
use nodefold_api::admission::attributes::User;
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::Name;
use patient::Patient;
use pki::Authority;
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// What a served node is started with.
#[derive(Clone, Debug)]
pub struct ServedSettings {
    /// The node's directory.
    pub layout: Layout,
    /// The node's name.
    pub node_name: String,
    /// The port on the loopback address; 0: the one of before, or any that is free.
    pub port: u16,
    /// Parts of pods that are switched off: of dynamic, allocated, resize, ephemeralcontainers.
    pub disabled_pod_subresources: Vec<String>,
    /// The two KEPs' gates, of the API and of the node.
    pub gates: FeatureGates,
    /// Where manifests of static pods are, if there are any.
    pub manifests: Option<PathBuf>,
    /// The version of Kubernetes that the server says it is.
    pub version: String,
    /// How much may be asked for.
    pub limits: Limits,
    /// What was answered survives the machine's end, not only the agent's.
    pub durable: bool,
}

/// A served node, ready to run.
pub struct Served {
    hub: Hub,
    asks: Receiver<Ask>,
    stop: Stop,
    runtime: Runtime,
    /// Where it is served, and how it was found.
    pub facts: ServedFacts,
}

/// Parts of pods that are not served: what is switched off, and what is behind a gate that is closed.
fn absent_parts(settings: &ServedSettings) -> Vec<String> {
    let gated = if settings.gates.dynamic_containers { &[][..] } else { &GATED[..] };
    let gated = gated.iter().map(|part| (*part).to_owned());
    settings.disabled_pod_subresources.iter().cloned().chain(gated).collect()
}

/// KEP-5972: the gate in the API server decides whether these are there.
const GATED: [&str; 2] = ["allocated", "dynamic"];

/// Where a node is served.
#[derive(Clone, Debug)]
pub struct ServedFacts {
    /// The address of the TLS port.
    pub address: SocketAddr,
    /// The socket.
    pub socket: PathBuf,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Requests of earlier lives that were folded again: those that came after the store was kept.
    pub requests: u64,
}

/// Ends it, from anywhere.
#[derive(Clone)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    wake: Waker,
}

impl Stop {
    /// Ends it soon.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::SeqCst);
        (self.wake)();
    }
}

/// What connections share.
struct Server {
    asks: Sender<Ask>,
    wake: Waker,
    stop: Arc<AtomicBool>,
    tokens: Tokens,
    rates: Rates,
    recorded: Recorded,
    limits: Limits,
    metrics: Arc<Metrics>,
    discovery: Discovery,
    version: Value,
    connections: Arc<Semaphore>,
    listings: Listings,
    /// Who reads the journal for what is not remembered.
    reading: Semaphore,
    /// Programs that clients run in containers.
    programs: Arc<Semaphore>,
}

impl Server {
    fn is_ending(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// What is refused before the node's loop hears of it is recorded as well, within limits.
    fn refused(&self, user: Option<&User>, method: &str, path: &str, code: u16, why: &str) {
        let Some(left_out) = self.recorded.take(crate::clock::monotonic()) else { return };
        let user = user.cloned().unwrap_or_else(|| User::named("system:anonymous"));
        let verb = match method {
            "GET" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "unknown",
        };
        let path: String = path.chars().take(256).collect();
        let why = why.chars().take(256).collect();
        let what = What::Refused { verb, code, why, left_out };
        let (reply, _) = tokio::sync::oneshot::channel();
        let ask =
            Ask { user, impersonator: None, target: Target::Path(path), what, how: How::default(), reply };
        // A loop that has no room for it is busy with requests that were not refused.
        if self.asks.try_send(ask).is_ok() {
            (self.wake)();
        }
    }
}

/// Parts of pods that may be switched off.
pub const SWITCHABLE: [&str; 4] = ["allocated", "dynamic", "ephemeralcontainers", "resize"];

/// Opens the node and begins to listen. Nothing is answered before `run`.
pub fn open(
    settings: ServedSettings,
    host: Box<dyn Host>,
    listener: &mut dyn Listener,
) -> Result<Served, Fault> {
    let data = settings.layout.data().to_owned();
    fs::create_dir_all(&data).attempt(|| format!("make {}", data.display()))?;
    let authority = Authority::open(&data.join("pki"))?;
    let metrics = Arc::new(
        Metrics::new(&settings.version).map_err(|error| Fault::refused(format!("metrics: {error}")))?,
    );
    let wake = host.waker();
    let hub_settings = HubSettings {
        layout: settings.layout.clone(),
        node_name: Name::from(settings.node_name.as_str()),
        disabled_pod_subresources: settings
            .disabled_pod_subresources
            .iter()
            .map(|s| Name::from(s.as_str()))
            .collect(),
        gates: settings.gates,
        content_key: crate::daemon::content_key(&data)?,
        version: settings.version.clone(),
        manifests: settings.manifests.clone(),
    };
    let opened =
        Hub::open(hub_settings, &settings.limits, settings.durable, host, metrics.clone(), listener)?;
    let (asks, asked) = bounded(settings.limits.waiting);
    let stop = Arc::new(AtomicBool::new(false));
    let server = Arc::new(Server {
        asks,
        wake: wake.clone(),
        stop: stop.clone(),
        tokens: Tokens::read(&authority.tokens())?,
        rates: Rates::new(&settings.limits),
        recorded: Recorded::new(),
        limits: settings.limits.clone(),
        metrics,
        discovery: Discovery { without: absent_parts(&settings) },
        version: version(&settings.version),
        connections: Arc::new(Semaphore::new(settings.limits.connections)),
        listings: Listings::new(crate::clock::now().0),
        reading: Semaphore::new(1),
        programs: Arc::new(Semaphore::new(settings.limits.programs)),
    });

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("server")
        .enable_all()
        .build()
        .attempt(|| "start the server's runtime")?;
    let socket = data.join("api.sock");
    let tls = TlsAcceptor::from(Arc::new(authority.server(&settings.node_name)?));
    let (tcp, unix) = {
        let _in_runtime = runtime.enter();
        let tcp = bind(settings.port, &data)
            .and_then(|tcp| tcp.set_nonblocking(true).map(|()| tcp))
            .and_then(TcpListener::from_std)
            .attempt(|| format!("listen on port {}", settings.port))?;
        // One that an agent left that was killed; the journal's lock says that none lives.
        fs::remove_file(&socket).ok();
        let unix = UnixListener::bind(&socket).attempt(|| format!("listen on {}", socket.display()))?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))
            .attempt(|| format!("close {} to others", socket.display()))?;
        (tcp, unix)
    };
    let address = tcp.local_addr().attempt(|| "read the port's number")?;
    let user = "nodefold-admin";
    let credentials = authority.client(user, &[hub::MASTERS.to_owned()])?;
    let kubeconfig = authority.kubeconfig(&format!("https://{address}"), user, &credentials);
    write_whole(&beneath::open_root(&data)?, "kubeconfig", pretty(&kubeconfig).as_bytes())?;
    runtime.spawn(accept_tcp(server.clone(), tcp, tls));
    runtime.spawn(accept_unix(server, unix));
    let facts =
        ServedFacts { address, socket, kubeconfig: data.join("kubeconfig"), requests: opened.requests };
    Ok(Served { hub: opened.hub, asks: asked, stop: Stop { asked: stop, wake }, runtime, facts })
}

impl Served {
    /// How to end it from elsewhere.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Runs until somebody asks it to end.
    pub fn run(self, listener: &mut dyn Listener) -> Result<(), Fault> {
        let done = self.hub.run(&self.asks, &self.stop.asked, listener);
        self.stop.asked.store(true, Ordering::SeqCst);
        drop(self.asks);
        self.runtime.shutdown_timeout(Duration::from_millis(500));
        fs::remove_file(&self.facts.socket).ok();
        done
    }
}

/// The port that was asked for; else the one of before, so that clients find the node again after a restart; else any.
fn bind(port: u16, data: &Path) -> std::io::Result<std::net::TcpListener> {
    let at = |port: u16| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    if port != 0 {
        return at(port);
    }
    let before = fs::read(data.join("kubeconfig")).ok().and_then(|text| {
        let known: Value = serde_json::from_slice(&text).ok()?;
        let server = known["clusters"][0]["cluster"]["server"].as_str()?.rsplit(':').next()?;
        server.parse().ok()
    });
    before.map_or_else(|| at(0), |port| at(port).or_else(|_| at(0)))
}

/// A kubeconfig for somebody else, signed by the authority of a node's directory.
pub fn kubeconfig_for(layout: &Layout, server: &str, user: &str, groups: &[String]) -> Result<String, Fault> {
    let authority = Authority::open(&layout.data().join("pki"))?;
    let credentials = authority.client(user, groups)?;
    Ok(pretty(&authority.kubeconfig(server, user, &credentials)))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// `/version`.
fn version(git: &str) -> Value {
    let mut numbers = git.trim_start_matches('v').split(['.', '+', '-']);
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    json!({"major": major, "minor": minor, "gitVersion": git, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("linux/{}", std::env::consts::ARCH)})
}

async fn accept_tcp(server: Arc<Server>, tcp: TcpListener, tls: TlsAcceptor) {
    loop {
        let permit = server.connections.clone().acquire_owned().await;
        let Ok((stream, _)) = tcp.accept().await else {
            // Out of descriptors, for one: that passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        stream.set_nodelay(true).ok();
        let (server, tls) = (server.clone(), tls.clone());
        tokio::spawn(async move {
            let handshake = tls.accept(stream);
            if let Ok(Ok(stream)) = tokio::time::timeout(server.limits.handshake_time, handshake).await {
                let certificates = stream.get_ref().1.peer_certificates();
                let peer = certificates
                    .and_then(|chain| chain.first())
                    .map_or(Peer::Unknown, |certificate| auth::of_certificate(certificate));
                if stream.get_ref().1.alpn_protocol() == Some(pki::HTTP2) {
                    many_at_once(server, stream, peer).await;
                } else {
                    connection(server, stream, peer).await;
                }
            }
            drop(permit);
        });
    }
}

async fn accept_unix(server: Arc<Server>, unix: UnixListener) {
    let own = rustix::process::geteuid().as_raw();
    loop {
        let permit = server.connections.clone().acquire_owned().await;
        let Ok((stream, _)) = unix.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let owner = stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0);
        let server = server.clone();
        tokio::spawn(async move {
            connection(server, stream, if owner { Peer::Owner } else { Peer::Unknown }).await;
            drop(permit);
        });
    }
}

async fn connection<S>(server: Arc<Server>, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(Patient::new(stream, server.limits.write_time));
    let (head, head_time) = (server.limits.head, server.limits.head_time);
    let refused = server.clone();
    let answers = service_fn(move |request| {
        let (server, peer) = (server.clone(), peer.clone());
        async move { Ok::<_, std::convert::Infallible>(http::serve(server, peer, request).await) }
    });
    // A connection that ends otherwise than it should is its client's affair.
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(head)
        .serve_connection(stream, answers)
        .with_upgrades()
        .await;
    if let Err(error) = served
        && error.is_parse()
    {
        refused.refused(None, "", "", 400, &error.to_string());
    }
}

/// A connection of HTTP/2, as the handshake agreed on.
async fn many_at_once<S>(server: Arc<Server>, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(Patient::new(stream, server.limits.write_time));
    let limits = server.limits.clone();
    let answers = service_fn(move |request| {
        let (server, peer) = (server.clone(), peer.clone());
        async move { Ok::<_, std::convert::Infallible>(http::serve(server, peer, request).await) }
    });
    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        // Whoever does not answer a ping has gone, or never meant to ask anything.
        .keep_alive_interval(limits.head_time)
        .keep_alive_timeout(limits.head_time)
        .serve_connection(stream, answers)
        .await
        .ok();
}
