//! What is asked of a collection: lists in pages and as of versions, watches, creations, deletions of many.

use super::ask::{Reply, Target, WatchFrom, What};
use super::failure::Failure;
use super::history::{Past, When};
use super::http::{Answer, Caller, FRAMES, JSON, manager, shown, text_of};
use super::listing::{GoOn, Page};
use super::query::Query;
use super::render::Form;
use super::resource::Resource;
use super::selection::Selection;
use super::watching::Watching;
use super::{body, resource};
use crate::clock::monotonic;
use hyper::body::Incoming;
use hyper::{Method, Request};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

impl Caller {
    pub(super) async fn collection(
        &self,
        request: Request<Incoming>,
        query: &Query,
        resource: &'static Resource,
        namespace: String,
    ) -> Result<Answer, Failure> {
        let accept = text_of(request.headers(), "accept");
        let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
        let selection = Selection::read(resource.kind, labels, fields, crate::clock::now())?;
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
                let is_everything = selection.is_everything();
                let page = self.list(query, resource, target(name), selection).await?;
                let rest = page.rest.map(|(token, left)| (token, is_everything.then_some(left)));
                Ok(Answer::json(200, &form.list(resource, &page.items, page.version, rest)))
            }
            Method::POST => {
                allowed("create")?;
                let form = Form::accepted(&accept, query, resource)?;
                let (manager, dry_run) = (manager(query, request.headers())?, query.dry_run()?);
                let content_type = text_of(request.headers(), "content-type");
                let bytes = self.body(request).await?;
                let object = body::object(&content_type, &bytes)?;
                let what = match resource.group {
                    "authentication.k8s.io" | "authorization.k8s.io" => What::Review(object),
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

    async fn list(
        &self,
        query: &Query,
        resource: &'static Resource,
        target: Target,
        selection: Selection,
    ) -> Result<Page, Failure> {
        let asked = Listed::read(query)?;
        let Target::Objects { namespace, .. } = &target else {
            return Err(Failure::internal("a list is of objects"));
        };
        let of = format!(
            "{} {namespace} {} {}",
            resource.plural,
            query.text("labelSelector"),
            query.text("fieldSelector")
        );
        let (mut exact, mut from) = (asked.exact, 0);
        if !asked.token.is_empty() {
            self.ask(target.clone(), What::Permission("list")).await?;
            match self.server.listings.go_on(&of, &asked.token, asked.limit, monotonic())? {
                GoOn::Page(page) => return Ok(page),
                GoOn::Again { version, from: next } => {
                    from = next;
                    exact = match selection.when {
                        When::Now => Some(version),
                        // It is a moment that never looks otherwise.
                        When::AsOf(_) | When::Revision(_) => None,
                        When::At(_) => return Err(Failure::stale_continue()),
                    };
                }
            }
        }
        if asked.exact.is_some() && selection.when != When::Now {
            return Err(Failure::bad_request(
                "an exact resourceVersion is a moment already: no other can be asked for",
            ));
        }
        let what = What::List { exact, when: selection.when };
        let (items, version) = match self.ask(target, what).await? {
            Reply::List { items, version } => (items, version),
            Reply::Past(past) => {
                let version = past.version;
                (read(&self.server.reading, past).await?, version)
            }
            Reply::Object { .. }
            | Reply::Watch(_)
            | Reply::Log(_)
            | Reply::Exec(_)
            | Reply::Call(_)
            | Reply::Permitted
            | Reply::Refused(_) => return Err(Failure::internal("a list was asked for")),
        };
        if let Some(least) = asked.least.filter(|least| *least > version) {
            return Err(Failure::too_large_version(least, version));
        }
        let meant: Vec<Arc<Value>> = items.into_iter().filter(|object| selection.takes(object)).collect();
        Ok(self.server.listings.begin(&of, meant, version, from, asked.limit, monotonic()))
    }

    async fn watch(
        &self,
        query: &Query,
        resource: &'static Resource,
        target: Target,
        selection: Selection,
        form: Form,
    ) -> Result<Answer, Failure> {
        if selection.when != When::Now {
            return Err(Failure::bad_request("what was can't be watched: list it"));
        }
        let from = watched_from(query)?;
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
}

/// What is not remembered. One reads at a time: it may be much.
pub(super) async fn read(reading: &tokio::sync::Semaphore, past: Past) -> Result<Vec<Arc<Value>>, Failure> {
    let _turn = reading.acquire().await.map_err(Failure::internal)?;
    tokio::task::spawn_blocking(|| past.read()).await.map_err(Failure::internal)?.map_err(Failure::internal)
}

/// The parameters of a list, as Kubernetes judges them.
struct Listed {
    limit: usize,
    token: String,
    /// Of this version and no other.
    exact: Option<u64>,
    /// Of this version or a later one.
    least: Option<u64>,
}

impl Listed {
    fn read(query: &Query) -> Result<Listed, Failure> {
        let limit = query.number("limit")?.map_or(0, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let token = query.text("continue").to_owned();
        let (text, match_by) = (query.text("resourceVersion"), query.text("resourceVersionMatch"));
        let field = "resourceVersionMatch";
        if !match_by.is_empty() {
            let forbidden = |what: &str| Err(Failure::bad_options(field, &format!("Forbidden: {what}")));
            if text.is_empty() {
                return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !token.is_empty() {
                return forbidden("resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(match_by, "Exact" | "NotOlderThan") {
                let what =
                    format!("Unsupported value: {match_by:?}: supported values: \"Exact\", \"NotOlderThan\"");
                return Err(Failure::bad_options(field, &what));
            }
            if match_by == "Exact" && text == "0" {
                return forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if !query.text("sendInitialEvents").is_empty() {
            let what = "Forbidden: sendInitialEvents is forbidden for list";
            return Err(Failure::bad_options("sendInitialEvents", what));
        }
        let version = version(text)?.filter(|version| *version > 0);
        if version.is_some() && !token.is_empty() {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        // A version with a limit and no word on how it is meant is an exact one, for as long as Kubernetes has had pages.
        let is_exact = match_by == "Exact" || match_by.is_empty() && limit > 0;
        let (exact, least) = if is_exact { (version, None) } else { (None, version) };
        Ok(Listed { limit, token, exact, least })
    }
}

/// From where a watch goes on, as Kubernetes judges its parameters.
fn watched_from(query: &Query) -> Result<WatchFrom, Failure> {
    let (initial, match_by) = (query.text("sendInitialEvents"), query.text("resourceVersionMatch"));
    let field = "resourceVersionMatch";
    if !initial.is_empty() && match_by != "NotOlderThan" {
        let what = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(Failure::bad_options(field, what));
    }
    if initial.is_empty() && !match_by.is_empty() {
        let what =
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(Failure::bad_options(field, what));
    }
    let version = version(query.text("resourceVersion"))?.filter(|version| *version > 0);
    Ok(match (initial, version) {
        ("", None) => WatchFrom::Beginning,
        (_, _) if query.flag("sendInitialEvents") => {
            if query.flag("allowWatchBookmarks") {
                WatchFrom::BeginningMarked
            } else {
                WatchFrom::Beginning
            }
        }
        (_, Some(version)) => WatchFrom::Version(version),
        (_, None) => WatchFrom::Now,
    })
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

/// The resource that pods are.
pub(super) fn pods() -> Result<&'static Resource, Failure> {
    resource::of_kind("Pod").ok_or_else(Failure::no_such_route)
}
