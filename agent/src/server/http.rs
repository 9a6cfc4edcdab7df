//! One request from its head to its answer: who asks, what is asked, the loop's reply in the form that the client accepts.

use super::ask::{Ask, How, LogPlace, Manager, Reply, Target, What};
use super::auth::{self, Peer};
use super::failure::Failure;
use super::query::Query;
use super::render::Form;
use super::resource::{Resource, Subresource};
use super::route::{NoRoute, Route, route, unescaped};
use super::{Server, body, logs, openapi, webhooks};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use nodefold_api::FieldValidation;
use nodefold_api::admission::attributes::User;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io::Write;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

pub(super) const JSON: &str = "application/json";

/// Frames that wait for a client's connection.
pub(super) const FRAMES: usize = 16;

/// Answers of this length and more are packed for whoever takes that: Kubernetes' own threshold.
const PACKED_FROM: usize = 128 << 10;

/// The body of an answer.
pub enum Body {
    /// All of it.
    Whole(Option<Bytes>),
    /// What comes.
    Stream(mpsc::Receiver<Bytes>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(queue) => queue.poll_recv(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Body::Whole(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Stream(_) => hyper::body::SizeHint::default(),
        }
    }
}

/// An answer before it is a response.
pub(super) struct Answer {
    code: u16,
    content_type: &'static str,
    warnings: Vec<String>,
    body: Body,
    /// The protocol that the connection goes on with.
    upgrade: Option<Upgrade>,
}

/// A connection that goes on with another protocol.
pub(super) struct Upgrade {
    /// `Sec-WebSocket-Accept`.
    pub accept: String,
    /// `Sec-WebSocket-Protocol`.
    pub protocol: &'static str,
}

impl Answer {
    pub(super) fn json(code: u16, value: &Value) -> Answer {
        Answer::bytes(code, JSON, value.to_string().into_bytes())
    }

    pub(super) fn bytes(code: u16, content_type: &'static str, bytes: Vec<u8>) -> Answer {
        Answer {
            code,
            content_type,
            warnings: Vec::new(),
            body: Body::Whole(Some(bytes.into())),
            upgrade: None,
        }
    }

    pub(super) fn stream(content_type: &'static str, queue: mpsc::Receiver<Bytes>) -> Answer {
        Answer { code: 200, content_type, warnings: Vec::new(), body: Body::Stream(queue), upgrade: None }
    }

    pub(super) fn switch(upgrade: Upgrade) -> Answer {
        Answer { upgrade: Some(upgrade), ..Answer::bytes(101, JSON, Vec::new()) }
    }
}

/// Answers a request. Never fails: a failure is an answer.
pub async fn serve(server: Arc<Server>, peer: Peer, request: Request<Incoming>) -> Response<Body> {
    server.metrics.begun();
    let method = request.method().clone();
    let takes_gzip = text_of(request.headers(), "accept-encoding").split(',').any(|one| one.trim() == "gzip");
    let found = route(request.uri().path());
    let resource = match &found {
        Ok(Route::Collection(of, _) | Route::Object(of, ..) | Route::Part(of, ..)) => of.plural,
        Ok(_) | Err(_) => "",
    };
    let path = request.uri().path().to_owned();
    let heard = Heard::default();
    let (answer, retry) = match answer(&server, &peer, request, found, &heard).await {
        Ok(answer) => (answer, None),
        Err(failure) => {
            if !heard.by_loop.load(Ordering::Relaxed) {
                server.refused(heard.user.get(), method.as_str(), &path, failure.code, failure.message());
            }
            let retry = failure.retry_after();
            let answer = Answer::json(failure.code, &failure.status);
            (Answer { warnings: failure.warnings, ..answer }, retry)
        }
    };
    server.metrics.answered(method.as_str(), resource, answer.code);
    let (body, is_packed) = if method == Method::GET && takes_gzip && answer.code == 200 {
        packed(answer.body).await
    } else {
        (answer.body, false)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(answer.content_type));
    headers.insert("cache-control", HeaderValue::from_static("no-cache, private"));
    if is_packed {
        headers.insert("content-encoding", HeaderValue::from_static("gzip"));
        headers.insert("vary", HeaderValue::from_static("Accept-Encoding"));
    }
    if let Some(seconds) = retry {
        headers.insert("retry-after", HeaderValue::from(seconds));
    }
    if answer.code == 401 {
        headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
    }
    if let Some(Upgrade { accept, protocol }) = &answer.upgrade {
        headers.remove("content-type");
        headers.insert("connection", HeaderValue::from_static("Upgrade"));
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
        if let Ok(accept) = HeaderValue::from_str(accept) {
            headers.insert("sec-websocket-accept", accept);
        }
    }
    for warning in answer.warnings {
        // A quoted string (RFC 9110), in UTF-8 as an API server sends it.
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            headers.append("warning", value);
        }
    }
    response
}

/// As a real server: what is large is packed, quickly rather than well; what is small or goes on is not.
async fn packed(body: Body) -> (Body, bool) {
    let bytes = match body {
        Body::Whole(Some(bytes)) if bytes.len() >= PACKED_FROM => bytes,
        Body::Whole(_) | Body::Stream(_) => return (body, false),
    };
    let given = bytes.clone();
    let pack = move || {
        let mut packer = GzEncoder::new(Vec::with_capacity(given.len() / 8), Compression::fast());
        packer.write_all(&given).and_then(|()| packer.finish())
    };
    match tokio::task::spawn_blocking(pack).await {
        Ok(Ok(small)) => (Body::Whole(Some(small.into())), true),
        Ok(Err(_)) | Err(_) => (Body::Whole(Some(bytes)), false),
    }
}

async fn answer(
    server: &Arc<Server>,
    peer: &Peer,
    request: Request<Incoming>,
    found: Result<Route, NoRoute>,
    heard: &Heard,
) -> Result<Answer, Failure> {
    // Whether it lives is nobody's secret.
    match found {
        Ok(Route::Health) => return Ok(server.health()),
        Ok(Route::Version) => return Ok(Answer::json(200, &server.version)),
        Ok(_) | Err(_) => {}
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let real = auth::user(peer, header("authorization"), &server.tokens)?;
    heard.user.set(real.clone()).ok();
    server.rates.take(&real.name, crate::clock::monotonic())?;
    let (user, impersonator) = impersonated(request.headers(), real);
    let found = found.map_err(|no| match no {
        NoRoute::Malformed => Failure::bad_request("the path names nothing: it is malformed"),
        NoRoute::Unknown => Failure::no_such_route(),
    })?;
    let query = Query::read(request.uri().query().unwrap_or_default())?;
    let field_validation = query.field_validation()?;
    let heard = heard.by_loop.clone();
    let doubled = Mutex::default();
    let caller = Caller { server: server.clone(), user, impersonator, field_validation, heard, doubled };
    let answered = match found {
        Route::Collection(resource, namespace) => {
            caller.collection(request, &query, resource, namespace.unwrap_or_default()).await
        }
        Route::Object(resource, namespace, name) => {
            caller.object(request, &query, resource, None, namespace, name).await
        }
        Route::Part(resource, part, namespace, name) => {
            caller.object(request, &query, resource, Some(part), namespace, name).await
        }
        Route::Allocated(words) => caller.allocated(&request, words).await,
        found @ (Route::Health
        | Route::Version
        | Route::Metrics
        | Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Resources(..)
        | Route::OpenApiRoot
        | Route::OpenApi(..)
        | Route::OpenApiOld) => caller.document(&request, &found).await,
    };
    let doubled = caller.doubled.into_inner().unwrap_or_default();
    match answered {
        Ok(mut answer) => {
            answer.warnings.splice(0..0, doubled);
            Ok(answer)
        }
        Err(mut failure) => {
            failure.warnings.splice(0..0, doubled);
            Err(failure)
        }
    }
}

/// For whom it is asked, and by whom really.
fn impersonated(headers: &HeaderMap, real: User) -> (User, Option<User>) {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    match headers.get("impersonate-user").and_then(text) {
        None => (real, None),
        Some(name) => {
            let groups: Vec<String> = headers.get_all("impersonate-group").iter().filter_map(text).collect();
            let mut user = auth::with_groups(&name, &groups);
            user.uid = headers.get("impersonate-uid").and_then(text).unwrap_or_default().into();
            for (key, value) in headers {
                let key = key.as_str().strip_prefix("impersonate-extra-").and_then(unescaped);
                if let (Some(key), Some(value)) = (key, text(value)) {
                    user.extra.entry(key.into()).or_default().push(value.into());
                }
            }
            (user, Some(real))
        }
    }
}

/// Who asks, and whom to ask.
pub(super) struct Caller {
    pub(super) server: Arc<Server>,
    user: User,
    impersonator: Option<User>,
    field_validation: FieldValidation,
    /// Fields that the body gives twice, of which the client is warned.
    doubled: Mutex<Vec<String>>,
    heard: Arc<AtomicBool>,
}

/// How far a request came.
#[derive(Default)]
struct Heard {
    user: OnceLock<User>,
    /// The node's loop was asked, and has recorded it.
    by_loop: Arc<AtomicBool>,
}

/// A request for which webhooks were asked so often gives up: what it is about changes faster than they answer.
const MOST_CALLS: usize = 64;

impl Caller {
    /// Asks the node's loop, and webhooks for it.
    pub(super) async fn ask(&self, target: Target, mut what: What) -> Result<Reply, Failure> {
        let mut how = How { field_validation: self.field_validation, webhooks: Vec::new() };
        for _ in 0..MOST_CALLS {
            let reply = self.send(target.clone(), what, how.clone()).await?;
            let Reply::Call(asked) = reply else { return Ok(reply) };
            let (call, again) = *asked;
            how.webhooks.push(webhooks::ask(&call).await);
            what = again;
        }
        Err(Failure::internal("the object changes faster than webhooks answer"))
    }

    async fn send(&self, target: Target, what: What, how: How) -> Result<Reply, Failure> {
        let (reply, answer) = oneshot::channel();
        let (user, impersonator) = (self.user.clone(), self.impersonator.clone());
        let ask = Ask { user, impersonator, target, what, how, reply };
        self.server.asks.try_send(ask).map_err(|refused| match refused {
            crossbeam_channel::TrySendError::Full(_) => {
                Failure::too_many_requests("too many requests wait, please try again later", 1)
            }
            crossbeam_channel::TrySendError::Disconnected(_) => Failure::unavailable(),
        })?;
        self.heard.store(true, Ordering::Relaxed);
        (self.server.wake)();
        match answer.await {
            Ok(Reply::Refused(failure)) => Err(failure),
            Ok(reply) => Ok(reply),
            Err(_) => Err(Failure::unavailable()),
        }
    }

    /// What is no object.
    async fn document(&self, request: &Request<Incoming>, wanted: &Route) -> Result<Answer, Failure> {
        let path = request.uri().path().to_owned();
        if request.method() != Method::GET {
            return Err(Failure::method_not_allowed());
        }
        self.ask(Target::Path(path), What::Permission("get")).await?;
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok());
        let aggregated = accept.unwrap_or_default().split(',').any(|range| {
            range.contains("as=APIGroupDiscoveryList")
                && range.contains("v=v2")
                && !range.contains("v=v2beta1")
        });
        let discovery = &self.server.discovery;
        Ok(match wanted {
            Route::CoreVersions | Route::Groups if aggregated => {
                let core = *wanted == Route::CoreVersions;
                let text = discovery.aggregated(core).to_string();
                Answer::bytes(200, super::discovery::AGGREGATED, text.into_bytes())
            }
            Route::CoreVersions => Answer::json(200, &discovery.core_versions()),
            Route::Groups => Answer::json(200, &discovery.group_list()),
            Route::Group(group) => Answer::json(200, &discovery.group(group)),
            Route::Resources(group, version) => Answer::json(200, &discovery.resources(group, version)),
            Route::OpenApiRoot => Answer::json(200, &openapi::root()),
            Route::OpenApi(group, version) => Answer::json(200, &openapi::document(group, version)),
            Route::Metrics => {
                let text = self.server.metrics.text().map_err(Failure::internal)?;
                Answer::bytes(200, "text/plain; version=0.0.4; charset=utf-8", text)
            }
            Route::OpenApiOld => Answer::bytes(200, openapi::OLD_TYPE, super::protobuf::empty_openapi_v2()),
            Route::Health
            | Route::Version
            | Route::Allocated(_)
            | Route::Collection(..)
            | Route::Object(..)
            | Route::Part(..) => return Err(Failure::no_such_route()),
        })
    }

    async fn allocated(&self, request: &Request<Incoming>, words: Vec<String>) -> Result<Answer, Failure> {
        if request.method() != Method::GET {
            return Err(Failure::method_not_allowed());
        }
        let path = Target::Path(request.uri().path().to_owned());
        let pods = super::collection::pods()?;
        shown(self.ask(path, What::Allocated(words)).await?, Form::Plain, pods)
    }

    async fn object(
        &self,
        request: Request<Incoming>,
        query: &Query,
        resource: &'static Resource,
        part: Option<&'static Subresource>,
        namespace: String,
        name: String,
    ) -> Result<Answer, Failure> {
        let verbs = part.map_or(resource.verbs, |part| part.verbs);
        let allowed =
            |verb: &str| if verbs.contains(&verb) { Ok(()) } else { Err(Failure::method_not_allowed()) };
        let target = Target::Objects { resource, part, namespace, name };
        let accept = text_of(request.headers(), "accept");
        match *request.method() {
            Method::GET if part.is_some_and(|part| part.name == "log") => {
                allowed("get")?;
                self.log(query, target).await
            }
            Method::GET | Method::POST if part.is_some_and(|part| part.verbs.contains(&"create")) => {
                self.connect(request, query, part, target).await
            }
            Method::GET => {
                allowed("get")?;
                let form = Form::accepted(&accept, query, resource)?;
                let found = match self.ask(target, What::Get).await? {
                    Reply::Past(past) => {
                        let name = past.name().to_owned();
                        let mut found = super::collection::read(&self.server.reading, past).await?;
                        let none = || Failure::not_found(resource.group, resource.plural, &name);
                        let object = found.pop().ok_or_else(none)?;
                        Reply::Object { object, created: false, warnings: Vec::new() }
                    }
                    found @ (Reply::Object { .. }
                    | Reply::List { .. }
                    | Reply::Watch(_)
                    | Reply::Log(_)
                    | Reply::Exec(_)
                    | Reply::Call(_)
                    | Reply::Permitted
                    | Reply::Refused(_)) => found,
                };
                shown(found, form, resource)
            }
            Method::PUT | Method::PATCH => {
                let is_put = *request.method() == Method::PUT;
                allowed(if is_put { "update" } else { "patch" })?;
                let form = Form::accepted(&accept, query, resource)?;
                let (manager, dry_run) = (manager(query, request.headers())?, query.dry_run()?);
                let content_type = text_of(request.headers(), "content-type");
                let bytes = self.body(request).await?;
                let body = if is_put {
                    super::ask::Change::Put(body::object(&content_type, &bytes)?)
                } else {
                    body::patch(&content_type, &bytes, query.flag("force"))?
                };
                if matches!(body, super::ask::Change::Apply { .. }) && query.text("fieldManager").is_empty() {
                    return Err(Failure::new(
                        422,
                        "Invalid",
                        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
                    ));
                }
                shown(self.ask(target, What::Change { body, manager, dry_run }).await?, form, resource)
            }
            Method::DELETE => {
                allowed("delete")?;
                let form = Form::accepted(&accept, query, resource)?;
                let content_type = text_of(request.headers(), "content-type");
                let bytes = self.body(request).await?;
                let deletion = body::deletion(&content_type, &bytes, query)?;
                shown(self.ask(target, What::Delete(deletion)).await?, form, resource)
            }
            _ => Err(Failure::method_not_allowed()),
        }
    }

    async fn log(&self, query: &Query, target: Target) -> Result<Answer, Failure> {
        let wanted = logs::Wanted::read(query, now()?)?;
        let container = query.text("container").to_owned();
        let ask = move || What::Log { container: container.clone() };
        let Reply::Log(place) = self.ask(target.clone(), ask()).await? else {
            return Err(Failure::internal("a log was asked for"));
        };
        let Some(path) = logs::file(&place, wanted.previous).await? else {
            return Ok(Answer::bytes(200, "text/plain", Vec::new()));
        };
        Ok(Answer::stream("text/plain", self.told_on(path, place, wanted, target, ask)))
    }

    /// The lines of a log, as long as the same may be asked again and is answered with the same pod's.
    pub(super) fn told_on(
        &self,
        path: PathBuf,
        place: LogPlace,
        wanted: logs::Wanted,
        target: Target,
        ask: impl Fn() -> What + Send + Sync + 'static,
    ) -> mpsc::Receiver<Bytes> {
        let (out, queue) = mpsc::channel(FRAMES);
        let caller = Caller {
            server: self.server.clone(),
            user: self.user.clone(),
            impersonator: self.impersonator.clone(),
            field_validation: self.field_validation,
            heard: self.heard.clone(),
            doubled: Mutex::default(),
        };
        tokio::spawn(async move {
            let uid = place.uid.clone();
            // Whoever may not read it any more reads on no further; neither does who follows a pod that is gone.
            let ended = || {
                let asked = caller.ask(target.clone(), ask());
                let uid = uid.clone();
                async move {
                    match asked.await {
                        Ok(Reply::Log(now)) => now.ended || now.uid != uid,
                        Ok(_) | Err(_) => true,
                    }
                }
            };
            logs::send(path, place, wanted, out, ended).await;
        });
        queue
    }

    /// Of a field that comes twice the last counts; whether that is refused, told or passed over is the client's to say.
    fn judge_doubled(&self, body: &[u8]) -> Result<(), Failure> {
        if self.field_validation == FieldValidation::Ignore {
            return Ok(());
        }
        let doubled = nodefold_k8s::duplicate_fields(body).into_iter();
        let told: Vec<String> = doubled.map(|field| format!("duplicate field {field:?}")).collect();
        if self.field_validation == FieldValidation::Strict && !told.is_empty() {
            return Err(Failure::bad_request(format!("strict decoding error: {}", told.join(", "))));
        }
        if let Ok(mut doubled) = self.doubled.lock() {
            *doubled = told;
        }
        Ok(())
    }

    /// The whole body, if it is no larger and no slower than it may be.
    pub(super) async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Failure> {
        let limits = &self.server.limits;
        let read = Limited::new(request.into_body(), limits.body).collect();
        match tokio::time::timeout(limits.body_time, read).await {
            Err(_) => Err(Failure::too_slow()),
            Ok(Ok(whole)) => {
                let bytes = whole.to_bytes();
                self.judge_doubled(&bytes)?;
                Ok(bytes)
            }
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Failure::too_large(limits.body))
            }
            Ok(Err(error)) => Err(Failure::bad_request(format!("the body can't be read: {error}"))),
        }
    }
}

impl Server {
    fn health(&self) -> Answer {
        if self.is_ending() {
            let failure = Failure::unavailable();
            return Answer::json(failure.code, &failure.status);
        }
        Answer::bytes(200, "text/plain; charset=utf-8", b"ok".to_vec())
    }
}

fn now() -> Result<Timestamp, Failure> {
    Timestamp::from_nanosecond(i128::from(crate::clock::now().0)).map_err(Failure::internal)
}

pub(super) fn text_of(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

pub(super) fn manager(query: &Query, headers: &HeaderMap) -> Result<Manager, Failure> {
    let named = query.text("fieldManager");
    if named.len() > 128 {
        return Err(Failure::bad_request("fieldManager: may not be more than 128 bytes"));
    }
    if !named.is_empty() {
        return Ok(Manager(named.to_owned()));
    }
    // As Kubernetes: what the program calls itself, up to its version.
    let agent = text_of(headers, "user-agent");
    let word: String = agent.split('/').next().unwrap_or_default().chars().take(128).collect();
    Ok(Manager(if word.is_empty() { "unknown".to_owned() } else { word }))
}

pub(super) fn shown(reply: Reply, form: Form, resource: &'static Resource) -> Result<Answer, Failure> {
    match reply {
        Reply::Object { object, created, warnings } => {
            let code = if created { 201 } else { 200 };
            Ok(Answer { warnings, ..Answer::json(code, &form.one(&object)) })
        }
        Reply::List { items, version } => Ok(Answer::json(200, &form.list(resource, &items, version, None))),
        Reply::Permitted => Ok(Answer::json(200, &json!({}))),
        Reply::Refused(failure) => Err(failure),
        Reply::Past(_) | Reply::Exec(_) | Reply::Watch(_) | Reply::Log(_) | Reply::Call(_) => {
            Err(Failure::internal("another answer was asked for"))
        }
    }
}
