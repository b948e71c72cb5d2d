//! The server: sends the page, and passes questions to the thread with the recordings.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query as Asked, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};
use tracewalk_session::{At, Observer, Session};

use crate::answer::View;
use crate::bounded::{Bounded, MOST_CONNECTIONS};
use crate::coming::{Coming, Watching};
use crate::error::ViewError;
use crate::guard::{Denial, Guard};
use crate::options::Options;
use crate::page::{HEAD, HTML, POLICY, SCRIPTS, STYLE};
use crate::prepare::prepare;
use crate::query::{Query, Refusal};
use crate::recording::Recording;

/// The address of the page, and the place that it shows first.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The port on this machine; 0 takes a free one.
    pub port: u16,
    /// The place that is shown first.
    pub at: At,
}

/// A question, and the channel for the answer.
struct Job {
    question: String,
    query: Query,
    reply: oneshot::Sender<Result<Vec<u8>, Refusal>>,
}

/// The state that all requests share.
struct Shared {
    guard: Guard,
    coming: Arc<Coming>,
    /// Whether the page can be shown, and whether its figures are counted.
    is_ready: AtomicBool,
    is_counted: AtomicBool,
    jobs: SyncSender<Job>,
}

/// The most questions that wait.
const MOST_JOBS: usize = 64;

/// Shows a capture as a page, until the process ends; returns only with an error. `listening` is called with the page's address.
///
/// # Errors
///
/// If the server cannot listen, the capture has no execution, or a source cannot be followed.
pub fn serve(
    session: &mut Session,
    options: &Options<'_>,
    place: Place,
    observer: &dyn Observer,
    listening: &mut dyn FnMut(&str),
) -> Result<(), ViewError> {
    // No other machine reaches this address.
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, place.port));
    let listen = |error| ViewError::Listen { address: wanted, error };
    let listener = TcpListener::bind(wanted).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let token = token()?;
    let (jobs, asked) = sync_channel(MOST_JOBS);
    let guard = Guard::new(address, token.clone());
    let (is_ready, is_counted) = (AtomicBool::new(false), AtomicBool::new(false));
    let coming = &Arc::new(Coming::default());
    let shared = Arc::new(Shared { guard, coming: Arc::clone(coming), is_ready, is_counted, jobs });
    let server = Server::start(listener, Arc::clone(&shared))?;
    listening(&format!("http://{address}/#token={token}"));

    let mut prepared = prepare(session, options, coming, observer)?;
    let uncounted = prepared.take_uncounted();
    let (session, prepared) = (&*session, &prepared);
    // An index borrows the program, which is in `prepared`.
    let indexes = prepared.sources.iter().map(|source| source.index(session, options, coming));
    let (indexes, figures) = (indexes.collect::<Vec<_>>(), OnceLock::new());
    if indexes.iter().all(|index| index.totals().steps == 0) {
        return Err(ViewError::Nothing);
    }
    shared.is_ready.store(true, Ordering::Release);
    // Requests arrive only while these exist.
    let mut asking = Some((server, Some(shared)));
    std::thread::scope(|scope| {
        let (indexes, figures, name) = (&indexes, &figures, options.name.clone());
        std::thread::Builder::new().spawn_scoped(scope, move || {
            let recordings = prepared.sources.iter().zip(indexes);
            let recordings = recordings.map(|(source, index)| Recording::new(source, index)).collect();
            answer(View { name, recordings, figures, at: place.at }, &asked);
        })?;
        match prepared.finish(uncounted, session, options, &Watching { observer, coming }) {
            Ok(counted) => {
                // The figures are set only here.
                let _ = figures.set(counted);
                // From now on only the server can ask: if it ends, so does the other thread.
                if let Some(shared) = asking.as_mut().and_then(|(_, shared)| shared.take()) {
                    shared.is_counted.store(true, Ordering::Release);
                }
                Ok::<(), ViewError>(())
            }
            Err(error) => {
                // Ends the other thread.
                drop(asking.take());
                Err(error.into())
            }
        }
    })?;
    Err(ViewError::Ended)
}

/// Answers questions until all senders are gone.
fn answer(mut view: View<'_>, asked: &Receiver<Job>) {
    for Job { question, query, reply } in asked {
        // The client may have gone.
        if reply.is_closed() {
            continue;
        }
        let answer = view.answer(&question, &query);
        let answer = answer.and_then(|answer| serde_json::to_vec(&answer).map_err(|_| Refusal::Nothing));
        let _ = reply.send(answer);
    }
}

/// 128 random bits.
fn token() -> Result<String, ViewError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| ViewError::NoToken)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The thread that serves browsers. Dropping this ends the thread.
struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(listener: TcpListener, shared: Arc<Shared>) -> Result<Self, ViewError> {
        // The server sleeps when the process has no file left for another connection.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let listener = Bounded { listener, places: Arc::new(Semaphore::new(MOST_CONNECTIONS)) };
        let thread = std::thread::Builder::new().name("page".to_owned()).spawn(move || {
            let serving = runtime.spawn(async move { axum::serve(listener, router(shared)).await });
            let (mut stopped, mut serving) = (pin!(stopped), pin!(serving));
            runtime.block_on(poll_fn(|context| {
                let ends =
                    stopped.as_mut().poll(context).is_ready() | serving.as_mut().poll(context).is_ready();
                if ends { Poll::Ready(()) } else { Poll::Pending }
            }));
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/page/{name}", get(file))
        .route("/api/{question}", get(ask))
        .fallback(nothing)
        .with_state(shared)
}

/// The headers of every answer.
fn answered(status: StatusCode, kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let more =
        [("cross-origin-resource-policy", "same-origin"), ("cross-origin-opener-policy", "same-origin")];
    (status, headers, more, body.into()).into_response()
}

fn refused(status: StatusCode, what: &str) -> Response {
    answered(status, "application/json", json!({ "error": what }).to_string())
}

fn denied(denial: Denial) -> Response {
    refused(StatusCode::FORBIDDEN, denial.name())
}

async fn page(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if let Err(denial) = shared.guard.page(&headers) {
        return denied(denial);
    }
    let script = |(name, _): &(&str, &str)| format!("<script src=\"page/{name}\" defer></script>\n");
    let scripts = SCRIPTS.iter().map(script).collect::<String>();
    let head = format!("<link rel=\"stylesheet\" href=\"page/page.css\">\n{scripts}");
    answered(StatusCode::OK, "text/html; charset=utf-8", HTML.replace(HEAD.0, &head).replace(HEAD.1, ""))
}

async fn file(State(shared): State<Arc<Shared>>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    if let Err(denial) = shared.guard.page(&headers) {
        return denied(denial);
    }
    if name == "page.css" {
        return answered(StatusCode::OK, "text/css; charset=utf-8", STYLE);
    }
    match SCRIPTS.iter().find(|(known, _)| *known == name) {
        Some((_, script)) => answered(StatusCode::OK, "text/javascript; charset=utf-8", *script),
        None => refused(StatusCode::NOT_FOUND, "nothing"),
    }
}

async fn nothing(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    match shared.guard.page(&headers) {
        Err(denial) => denied(denial),
        Ok(()) => refused(StatusCode::NOT_FOUND, "nothing"),
    }
}

async fn ask(
    State(shared): State<Arc<Shared>>,
    Path(question): Path<String>,
    headers: HeaderMap,
    query: Result<Asked<Query>, QueryRejection>,
) -> Response {
    if let Err(denial) = shared.guard.answers(&headers) {
        return denied(denial);
    }
    let is_ready = shared.is_ready.load(Ordering::Acquire);
    if question == "status" {
        let (come, is_counted) = (shared.coming.come(), shared.is_counted.load(Ordering::Acquire));
        let status = json!({
            "ready": is_ready,
            "counted": is_counted,
            "done": come.done,
            "all": come.all,
            "decoded": come.decoded,
            "grown": come.grown,
        });
        return answered(StatusCode::OK, "application/json", status.to_string());
    }
    let Ok(Asked(query)) = query else { return refused(StatusCode::BAD_REQUEST, "query") };
    if !is_ready {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "not_ready");
    }
    let (reply, answer) = oneshot::channel();
    match shared.jobs.try_send(Job { question, query, reply }) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => return refused(StatusCode::SERVICE_UNAVAILABLE, "busy"),
        Err(TrySendError::Disconnected(_)) => return refused(StatusCode::SERVICE_UNAVAILABLE, "ended"),
    }
    match answer.await {
        Ok(Ok(answer)) => answered(StatusCode::OK, "application/json", answer),
        Ok(Err(Refusal::Question)) => refused(StatusCode::NOT_FOUND, "question"),
        Ok(Err(Refusal::Nothing)) => refused(StatusCode::NOT_FOUND, "nothing"),
        Ok(Err(Refusal::Later)) => refused(StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "ended"),
    }
}
