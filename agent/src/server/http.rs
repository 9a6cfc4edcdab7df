//! One request from its head to its answer: who asks, what is asked, the loop's reply in the form that the client accepts.

use super::ask::{Ask, How, Manager, Reply, Target, WatchFrom, What};
use super::auth::{self, Peer};
use super::failure::Failure;
use super::query::Query;
use super::render::Form;
use super::resource::{Resource, Subresource};
use super::route::{NoRoute, Route, route, unescaped};
use super::selection::Selection;
use super::watching::Watching;
use super::{Server, body, logs, openapi, webhooks};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use nodefold_api::FieldValidation;
use nodefold_api::admission::attributes::User;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

const JSON: &str = "application/json";

/// Frames that wait for a client's connection.
const FRAMES: usize = 16;

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
struct Answer {
    code: u16,
    content_type: &'static str,
    warnings: Vec<String>,
    body: Body,
}

impl Answer {
    fn json(code: u16, value: &Value) -> Answer {
        Answer::bytes(code, JSON, value.to_string().into_bytes())
    }

    fn bytes(code: u16, content_type: &'static str, bytes: Vec<u8>) -> Answer {
        Answer { code, content_type, warnings: Vec::new(), body: Body::Whole(Some(bytes.into())) }
    }

    fn stream(content_type: &'static str, queue: mpsc::Receiver<Bytes>) -> Answer {
        Answer { code: 200, content_type, warnings: Vec::new(), body: Body::Stream(queue) }
    }
}

/// Answers a request. Never fails: a failure is an answer.
pub async fn serve(server: Arc<Server>, peer: Peer, request: Request<Incoming>) -> Response<Body> {
    server.metrics.begun();
    let method = request.method().clone();
    let found = route(request.uri().path());
    let resource = match &found {
        Ok(Route::Collection(of, _) | Route::Object(of, ..) | Route::Part(of, ..)) => of.plural,
        Ok(_) | Err(_) => "",
    };
    let (answer, retry) = match answer(&server, &peer, request, found).await {
        Ok(answer) => (answer, None),
        Err(failure) => {
            let retry = failure.retry_after();
            let answer = Answer::json(failure.code, &failure.status);
            (Answer { warnings: failure.warnings, ..answer }, retry)
        }
    };
    server.metrics.answered(method.as_str(), resource, answer.code);
    let mut response = Response::new(answer.body);
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(answer.content_type));
    headers.insert("cache-control", HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = retry {
        headers.insert("retry-after", HeaderValue::from(seconds));
    }
    if answer.code == 401 {
        headers.insert("www-authenticate", HeaderValue::from_static("Bearer"));
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

async fn answer(
    server: &Arc<Server>,
    peer: &Peer,
    request: Request<Incoming>,
    found: Result<Route, NoRoute>,
) -> Result<Answer, Failure> {
    // Whether it lives is nobody's secret.
    match found {
        Ok(Route::Health) => return Ok(server.health()),
        Ok(Route::Version) => return Ok(Answer::json(200, &server.version)),
        Ok(_) | Err(_) => {}
    }
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let real = auth::user(peer, header("authorization"), &server.tokens)?;
    server.rates.take(&real.name, crate::clock::monotonic())?;
    let (user, impersonator) = impersonated(request.headers(), real);
    let found = found.map_err(|no| match no {
        NoRoute::Malformed => Failure::bad_request("the path names nothing: it is malformed"),
        NoRoute::Unknown => Failure::no_such_route(),
    })?;
    let query = Query::read(request.uri().query().unwrap_or_default())?;
    let field_validation = query.field_validation()?;
    let caller =
        Caller { server: server.clone(), user, impersonator, field_validation, doubled: Mutex::default() };
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
struct Caller {
    server: Arc<Server>,
    user: User,
    impersonator: Option<User>,
    field_validation: FieldValidation,
    /// Fields that the body gives twice, of which the client is warned.
    doubled: Mutex<Vec<String>>,
}

/// A request for which webhooks were asked so often gives up: what it is about changes faster than they answer.
const MOST_CALLS: usize = 64;

impl Caller {
    /// Asks the node's loop, and webhooks for it.
    async fn ask(&self, target: Target, mut what: What) -> Result<Reply, Failure> {
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
        self.ask(Target::Path(path), What::Permission).await?;
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
            // The old document is protobuf, and kubectl does without it.
            Route::OpenApiOld => return Err(Failure::no_such_route()),
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
        let pods = super::resource::of_kind("Pod").ok_or_else(Failure::no_such_route)?;
        shown(self.ask(path, What::Allocated(words)).await?, Form::Plain, pods)
    }

    async fn collection(
        &self,
        request: Request<Incoming>,
        query: &Query,
        resource: &'static Resource,
        namespace: String,
    ) -> Result<Answer, Failure> {
        let accept = text_of(request.headers(), "accept");
        let selection =
            Selection::read(resource.kind, query.text("labelSelector"), query.text("fieldSelector"))?;
        // A selection that names an object or a namespace is one of it, for roles as well.
        let name = selection.name().unwrap_or_default().to_owned();
        let namespace = match selection.namespace() {
            Some(named) if namespace.is_empty() && resource.namespaced => named.to_owned(),
            Some(_) | None => namespace,
        };
        let target =
            |name: String| Target::Objects { resource, part: None, namespace: namespace.clone(), name };
        let allowed = |verb: &str| {
            if resource.verbs.contains(&verb) { Ok(()) } else { Err(Failure::method_not_allowed()) }
        };
        match *request.method() {
            Method::GET if query.flag("watch") => {
                allowed("watch")?;
                let form = Form::accepted(&accept, query, resource)?;
                self.watch(query, resource, target(name), selection, form).await
            }
            Method::GET => {
                allowed("list")?;
                let form = Form::accepted(&accept, query, resource)?;
                let asked = version(query.text("resourceVersion"))?;
                let Reply::List { items, version } = self.ask(target(name), What::List).await? else {
                    return Err(Failure::internal("a list was asked for"));
                };
                check_version(query, asked, version)?;
                let meant: Vec<Arc<Value>> =
                    items.into_iter().filter(|object| selection.takes(object)).collect();
                Ok(Answer::json(200, &form.list(resource, &meant, version)))
            }
            Method::POST => {
                allowed("create")?;
                let form = Form::accepted(&accept, query, resource)?;
                let (manager, dry_run) = (manager(query, request.headers())?, query.dry_run()?);
                let content_type = text_of(request.headers(), "content-type");
                let bytes = self.body(request).await?;
                let object = body::object(&content_type, &bytes)?;
                let what = match resource.group {
                    "authorization.k8s.io" => What::Review(object),
                    _ => What::Create { object, manager, dry_run },
                };
                shown(self.ask(target(String::new()), what).await?, form, resource)
            }
            Method::DELETE => {
                allowed("deletecollection")?;
                let content_type = text_of(request.headers(), "content-type");
                let bytes = self.body(request).await?;
                let deletion = body::deletion(&content_type, &bytes, query)?;
                let what = What::DeleteAll(deletion, selection);
                shown(self.ask(target(String::new()), what).await?, Form::Plain, resource)
            }
            _ => Err(Failure::method_not_allowed()),
        }
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
            Method::GET => {
                allowed("get")?;
                let form = Form::accepted(&accept, query, resource)?;
                shown(self.ask(target, What::Get).await?, form, resource)
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

    async fn watch(
        &self,
        query: &Query,
        resource: &'static Resource,
        target: Target,
        selection: Selection,
        form: Form,
    ) -> Result<Answer, Failure> {
        let from = match (version(query.text("resourceVersion"))?, query.flag("sendInitialEvents")) {
            (_, true) => WatchFrom::BeginningMarked,
            (None | Some(0), false) => WatchFrom::Beginning,
            (Some(version), false) => WatchFrom::Version(version),
        };
        // As an API server: half an hour to an hour, so that not all come back at once.
        let spread = crate::clock::now().0 % 1_800;
        let seconds =
            query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0).unwrap_or(1_800 + spread);
        let Reply::Watch(subscription) = self.ask(target, What::Watch(from)).await? else {
            return Err(Failure::internal("a watch was asked for"));
        };
        let watching = Watching {
            selection,
            form,
            resource,
            bookmarks: query.flag("allowWatchBookmarks"),
            ends_after: Duration::from_secs(seconds.min(1 << 32)),
        };
        let (out, queue) = mpsc::channel(FRAMES);
        tokio::spawn(watching.send(subscription, out));
        Ok(Answer::stream(JSON, queue))
    }

    async fn log(&self, query: &Query, target: Target) -> Result<Answer, Failure> {
        let wanted = logs::Wanted::read(query, now()?)?;
        let container = query.text("container").to_owned();
        let ask = || What::Log { container: container.clone() };
        let Reply::Log(place) = self.ask(target.clone(), ask()).await? else {
            return Err(Failure::internal("a log was asked for"));
        };
        let (out, queue) = mpsc::channel(FRAMES);
        let Some(path) = logs::file(&place, wanted.previous).await? else {
            return Ok(Answer::bytes(200, "text/plain", Vec::new()));
        };
        let caller = Caller {
            server: self.server.clone(),
            user: self.user.clone(),
            impersonator: self.impersonator.clone(),
            field_validation: self.field_validation,
            doubled: Mutex::default(),
        };
        tokio::spawn(async move {
            let uid = place.uid.clone();
            // Whoever may not read it any more reads on no further; neither does who follows a pod that is gone.
            let ended = || {
                let asked = caller.ask(target.clone(), What::Log { container: container.clone() });
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
        Ok(Answer::stream("text/plain", queue))
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
    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Failure> {
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

fn text_of(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn manager(query: &Query, headers: &HeaderMap) -> Result<Manager, Failure> {
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

fn version(text: &str) -> Result<Option<u64>, Failure> {
    match text {
        "" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| Failure::bad_request(format!("resourceVersion: invalid value {text:?}"))),
    }
}

/// The answer is as of now: good for "not older than", and for an exact version only if it is that.
fn check_version(query: &Query, asked: Option<u64>, now: u64) -> Result<(), Failure> {
    let Some(asked) = asked.filter(|asked| *asked > 0) else { return Ok(()) };
    if asked > now {
        let what = format!("Too large resource version: {asked}, current: {now}");
        return Err(Failure::new(504, "Timeout", what));
    }
    if query.text("resourceVersionMatch") == "Exact" && asked != now {
        return Err(Failure::expired(asked, now));
    }
    Ok(())
}

fn shown(reply: Reply, form: Form, resource: &'static Resource) -> Result<Answer, Failure> {
    match reply {
        Reply::Object { object, created, warnings } => {
            let code = if created { 201 } else { 200 };
            Ok(Answer { warnings, ..Answer::json(code, &form.one(&object)) })
        }
        Reply::List { items, version } => Ok(Answer::json(200, &form.list(resource, &items, version))),
        Reply::Permitted => Ok(Answer::json(200, &json!({}))),
        Reply::Refused(failure) => Err(failure),
        Reply::Watch(_) | Reply::Log(_) | Reply::Call(_) => {
            Err(Failure::internal("another answer was asked for"))
        }
    }
}
