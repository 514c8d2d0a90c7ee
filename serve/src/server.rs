//! The server: one thread that waits, and a few that read journals and draw. Sizes, times and the number of connections are
//! limited here, before anything is known about the sender.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use archeflow_host::clock;
use archeflow_host::platform::machine;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use crate::access::{Access, IN, Secret};
use crate::catalog::Catalog;
use crate::changes::Changes;
use crate::feeds::Feeds;
use crate::pages;
use crate::starting::Deciding;

/// What was asked for on the command line.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// 0 for any that is free.
    pub port: u16,
    /// One more name that the server is reached by, as a browser writes it.
    pub host: Option<String>,
    /// Show only: there are no forms, and nothing answers them.
    pub read_only: bool,
    /// This program, which is started for what a person decides.
    pub program: PathBuf,
    /// Where the server was started: a queue of tasks may be there.
    pub cwd: PathBuf,
    /// End after so long without a request.
    pub idle_exit: Option<Duration>,
    /// A fleet whose journals are shown; `state` is the folder of their copies then.
    pub fleet: Option<ShownFleet>,
    /// The user's state folder, where the known repositories are listed.
    pub state: Option<PathBuf>,
    /// Numbers are served for Prometheus to who has this key.
    pub metrics_key: Option<[u8; 32]>,
    pub version: &'static str,
    pub limits: Limits,
}

/// Brings the artifacts of a run beside the copy of its journal, when somebody wants to see one; else says why not.
pub type BringArtifacts = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// A fleet whose journals are copied to this machine.
#[derive(Clone)]
pub struct ShownFleet {
    /// Its join file, as it was named.
    pub file: PathBuf,
    pub bring: BringArtifacts,
}

impl std::fmt::Debug for ShownFleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownFleet").field("file", &self.file).finish_non_exhaustive()
    }
}

/// What a client can use up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of those that showed the cookie.
    pub connections: usize,
    /// Of those that did not, as yet.
    pub strangers: usize,
    /// Of the line and the headers of a request, in bytes.
    pub head: usize,
    /// Until they are complete, and between two requests of a connection.
    pub head_time: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            strangers: 16,
            head: 16 * 1024,
            head_time: Duration::from_secs(15),
            write_time: Duration::from_secs(15),
        }
    }
}

/// Threads that read and draw, at most: a decision holds one until its command has begun.
const WORKERS: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("port {port} of this machine is in use")]
    PortInUse { port: u16 },
    #[error("port {port} of this machine can't be opened: {error}")]
    Port { port: u16, error: io::Error },
    #[error("the system gives no random numbers: {0}")]
    Random(io::Error),
    #[error("the server can't run: {0}")]
    Runtime(io::Error),
}

/// Everything a page is drawn from.
pub(crate) struct Ui {
    pub(crate) access: Access,
    pub(crate) catalog: Catalog,
    pub(crate) changes: Changes,
    pub(crate) feeds: Feeds,
    /// This program, for what a person decides.
    pub(crate) program: PathBuf,
    /// Where it was started.
    pub(crate) cwd: PathBuf,
    pub(crate) read_only: bool,
    /// The fleet that is shown.
    pub(crate) fleet: Option<ShownFleet>,
    pub(crate) port: u16,
    pub(crate) version: &'static str,
    /// Runs about which a decision is being carried out.
    pub(crate) deciding: Deciding,
    /// When the last request came, and how many are being answered.
    last: AtomicU64,
    busy: AtomicUsize,
}

impl Ui {
    /// While this is held, the server is in use.
    pub(crate) fn in_use(self: &Arc<Ui>) -> InUse {
        self.busy.fetch_add(1, Ordering::SeqCst);
        InUse(Arc::clone(self))
    }

    fn is_idle_for(&self, limit: Duration) -> bool {
        let quiet = clock::now().saturating_sub(self.last.load(Ordering::SeqCst));
        self.busy.load(Ordering::SeqCst) == 0 && u128::from(quiet) >= limit.as_millis()
    }
}

pub(crate) struct InUse(Arc<Ui>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.last.store(clock::now(), Ordering::SeqCst);
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    ui: Arc<Ui>,
    options: ServeOptions,
    stop: Arc<Notify>,
}

/// Ends a server from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<Notify>);

impl Stopper {
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    /// Listens on this machine only.
    pub fn bind(options: ServeOptions) -> Result<Server, ServeError> {
        let port = options.port;
        let failed = |error: io::Error| {
            let in_use = error.kind() == io::ErrorKind::AddrInUse;
            if in_use { ServeError::PortInUse { port } } else { ServeError::Port { port, error } }
        };
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(failed)?;
        let failed = |error| ServeError::Port { port, error };
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let metrics = options.metrics_key.map(Secret::new);
        let access = Access::new(port, options.host.clone(), [secret()?, secret()?, secret()?], metrics);
        let ui = Arc::new(Ui {
            access,
            catalog: match options.state.clone().filter(|_| options.fleet.is_some()) {
                Some(copies) => Catalog::of_copies(copies),
                None => Catalog::new(options.state.clone()),
            },
            changes: Changes::default(),
            feeds: Feeds::default(),
            program: options.program.clone(),
            cwd: options.cwd.clone(),
            read_only: options.read_only || options.fleet.is_some(),
            fleet: options.fleet.clone(),
            port,
            version: options.version,
            deciding: Deciding::default(),
            last: AtomicU64::new(clock::now()),
            busy: AtomicUsize::new(0),
        });
        Ok(Server { listener, ui, options, stop: Arc::new(Notify::new()) })
    }

    /// The address to open, with the token; for the user's eyes only.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{IN}?t={}", self.ui.port, self.ui.access.token.text())
    }

    pub fn port(&self) -> u16 {
        self.ui.port
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Answers until it is stopped, or idle for too long.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WORKERS)
            .thread_keep_alive(Duration::from_secs(5))
            .build()
            .map_err(ServeError::Runtime)?;
        let ended = runtime.block_on(self.answer());
        // Whoever is drawing now draws for nobody.
        runtime.shutdown_background();
        ended
    }

    async fn answer(self) -> Result<(), ServeError> {
        let listener = tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Runtime)?;
        let router = pages::router(Arc::clone(&self.ui));
        let limits = self.options.limits;
        let accepting = tokio::spawn(accept(listener, router, limits));
        let idle = async {
            match self.options.idle_exit {
                Some(limit) => until_idle(&self.ui, limit).await,
                None => std::future::pending().await,
            }
        };
        let stopped = self.stop.notified();
        either(idle, stopped).await;
        accepting.abort();
        Ok(())
    }
}

fn secret() -> Result<Secret, ServeError> {
    let mut bits = [0; 32];
    machine::random(&mut bits).map_err(ServeError::Random)?;
    Ok(Secret::new(bits))
}

async fn until_idle(ui: &Ui, limit: Duration) {
    let look = limit.clamp(Duration::from_millis(100), Duration::from_secs(5));
    while !ui.is_idle_for(limit) {
        tokio::time::sleep(look).await;
    }
}

async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let ended = one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready();
        if ended { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// A connection that ends when the client takes nothing of what is sent to it for too long: otherwise whoever reaches the
/// port could hold all places with requests whose answers they never read.
struct TakesWhatIsSent {
    stream: TcpStream,
    limit: Duration,
    /// Runs while something waits to be taken.
    patience: Option<Pin<Box<Sleep>>>,
}

impl TakesWhatIsSent {
    fn new(stream: TcpStream, limit: Duration) -> TakesWhatIsSent {
        TakesWhatIsSent { stream, limit, patience: None }
    }

    fn within_limit<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.patience = None;
            return polled;
        }
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        match patience.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TakesWhatIsSent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for TakesWhatIsSent {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_limit(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection, for the requests that come over it.
#[derive(Clone)]
pub(crate) struct Connection {
    places: Arc<Semaphore>,
    place: Arc<OnceLock<OwnedSemaphorePermit>>,
}

impl Connection {
    /// Counts it among those that showed the cookie, which no stranger takes the place of. False if there are too many.
    pub(crate) fn admit(&self) -> bool {
        if self.place.get().is_some() {
            return true;
        }
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.is_ok_and(|place| self.place.set(place).is_ok())
    }
}

/// Connections that have not shown the cookie. Everybody on this machine can open one, so they have few places, and the
/// oldest makes room for the next: else a few held open would keep out the user.
#[derive(Default)]
struct Strangers(VecDeque<(Weak<OnceLock<OwnedSemaphorePermit>>, AbortHandle)>);

impl Strangers {
    fn make_room(&mut self, most: usize) {
        self.0.retain(|(place, _)| place.upgrade().is_some_and(|place| place.get().is_none()));
        while self.0.len() >= most.max(1) {
            let oldest = self.0.pop_front();
            oldest.into_iter().for_each(|(_, connection)| connection.abort());
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, router: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut strangers = Strangers::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, say: the next moment may be better.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        strangers.make_room(limits.strangers);
        let connection = Connection { places: Arc::clone(&places), place: Arc::default() };
        let place = Arc::downgrade(&connection.place);
        let service = TowerToHyperService::new(router.clone().layer(Extension(connection)));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(limits.head);
        let stream = TakesWhatIsSent::new(stream, limits.write_time);
        let served = http.serve_connection(TokioIo::new(stream), service);
        let task = tokio::spawn(async move {
            // A client that breaks off or writes no HTTP has got its answer, or wants none.
            let _ = served.await;
        });
        strangers.0.push_back((place, task.abort_handle()));
        // What it sent is looked at before others can push it out.
        tokio::task::yield_now().await;
    }
}
