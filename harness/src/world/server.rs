//! The API server's side: stored objects behind `nodefold_api::Api`, the scheduler's one decision, and the watches that
//! tell the agent late and coalesced. Manifest files are a second source beside it.

use super::canonical::{self, Renaming, all, hashed, renamed_object, renamed_pod};
use super::latency;
use super::memo::{Answered, Memo, Met};
use super::part::Part;
use super::rulebook::{self, Answers};
use crate::scenario::PodRef;
use nodefold_api::{Api, ApiConfig, ApiEvent, Change, ChangeType, Request, Response};
use nodefold_core::Digest;
use nodefold_core::codec;
use nodefold_core::config::FeatureGates;
use nodefold_core::event::{Fact, Mirror, ObjectVersion};
use nodefold_core::ids::{Name, ObjectKind, ObjectRef, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::time::{Nanos, Time};
use nodefold_model::DynamicRules;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Keys the digests of secrets' content, so that a journal never holds what a guess could be checked against.
const CONTENT_KEY: [u8; 32] = *b"nodefold simulated world, a key.";

/// What a watch tells of one object.
#[derive(Clone, Debug)]
enum News {
    /// A pod's new version.
    Pod(Arc<Pod>),
    /// A pod is gone.
    Removed,
    /// A static pod's mirror, as it is.
    Mirror(Mirror),
    /// A mirror is gone.
    MirrorGone,
}

/// A pod's change on its way to the agent.
#[derive(Clone, Debug)]
struct OnTheWay {
    due: Time,
    what: News,
    /// Part of a source's first list in this life of the agent.
    listed: bool,
}

/// A pod can't be handed to the node although the API accepted it: the scenario can't be used.
#[derive(Clone, Debug)]
pub struct Undeliverable(pub String);

/// The API server and what is between it and the agent.
#[derive(Clone)]
pub struct Server {
    api: Part<Api>,
    node_name: Name,
    watched_up_to: u64,
    /// How often each name was given a UID.
    uids_given: Part<BTreeMap<(String, String, String), u64>>,
    names: Part<BTreeMap<PodUid, PodRef>>,
    newest: Part<BTreeMap<PodRef, PodUid>>,
    /// All pods that ever had a name, oldest first.
    lives: Part<BTreeMap<PodRef, Vec<PodUid>>>,
    newly_named: Vec<PodUid>,
    files: BTreeMap<PodRef, Arc<Pod>>,
    /// What was last put on its way for each pod, so that a change of status alone tells the agent nothing.
    sent: BTreeMap<PodUid, Arc<Pod>>,
    /// Likewise for each mirror pod.
    sent_mirrors: BTreeMap<PodUid, Mirror>,
    /// Conditions that readiness gates name, as the agent was told of them last. What it was not told of is not met.
    gates_told: BTreeMap<(PodUid, Name), bool>,
    queues: BTreeMap<(Source, PodUid), VecDeque<OnTheWay>>,
    /// Objects that pods known to the agent refer to.
    referenced_by: BTreeMap<PodUid, BTreeSet<ObjectRef>>,
    /// Who answers requests.
    answers: Answers,
    /// What `/dynamic` must answer (S16).
    rules: Part<DynamicRules>,
    /// It is a server without rules about names in flight, and S16 is not asked of it.
    is_trusting: bool,
    /// The watch of the API is cut.
    cut: bool,
    /// Removals that were on their way when it was.
    lost: Vec<(PodUid, News)>,
    /// Objects that the authorizer does not let the node read.
    forbidden: BTreeSet<ObjectRef>,
    /// What became of requests, where a search asks for the same ones again and again.
    memo: Option<Memo>,
}

/// What a batch of changes in the store means for the watches.
#[derive(Default)]
pub struct Stirred {
    /// Objects that the agent watches and that changed.
    pub objects: Vec<ObjectRef>,
    /// Conditions that readiness gates name, and that changed.
    pub gates: Vec<(PodUid, String)>,
    /// A pod that can't be delivered.
    pub undeliverable: Option<Undeliverable>,
    /// What is wrong with the answer itself (S16).
    pub wrong: Option<String>,
}

impl Server {
    /// An empty store.
    pub fn new(node_name: Name, gates: FeatureGates) -> Server {
        // The watches ask after every request.
        let changes_kept = 8;
        Server {
            api: Part::new(Api::new(ApiConfig {
                gates,
                node_name: node_name.clone(),
                changes_kept,
                // Nothing is behind a webhook here.
                absent_webhooks_allow: true,
                ..ApiConfig::default()
            })),
            node_name,
            watched_up_to: 0,
            uids_given: Part::default(),
            names: Part::default(),
            newest: Part::default(),
            lives: Part::default(),
            newly_named: Vec::new(),
            files: BTreeMap::new(),
            sent: BTreeMap::new(),
            sent_mirrors: BTreeMap::new(),
            gates_told: BTreeMap::new(),
            queues: BTreeMap::new(),
            referenced_by: BTreeMap::new(),
            answers: Api::apply,
            rules: Part::default(),
            is_trusting: false,
            cut: false,
            lost: Vec::new(),
            forbidden: BTreeSet::new(),
            memo: None,
        }
    }

    /// Somebody else answers requests from now on.
    pub fn answered_by(&mut self, answers: Answers) {
        self.answers = answers;
    }

    /// Handles a request and gives what it stirred up on the watches.
    pub fn request(&mut self, event: &ApiEvent, agent_listens: bool) -> (Response, Stirred) {
        let before = match &event.request {
            Request::Status { namespace, name, .. } => self.api.get("Pod", namespace, name).cloned(),
            Request::Create { .. }
            | Request::Update { .. }
            | Request::Dynamic { .. }
            | Request::Resize { .. }
            | Request::Ephemeral { .. }
            | Request::Delete { .. }
            | Request::PatchStatus { .. }
            | Request::Release { .. }
            | Request::NodeGates(_) => None,
        };
        let (response, wrong) = self.answered(event);
        let wrong = wrong.filter(|_| !self.is_trusting);
        let stirred = Stirred { wrong, ..self.stir(event.at, agent_listens, before.as_deref()) };
        (response, stirred)
    }

    /// The answer, and what is wrong with it: the same as before, if that very request came to this very store before.
    fn answered(&mut self, event: &ApiEvent) -> (Response, Option<String>) {
        let Some(memo) = self.memo.clone() else {
            return rulebook::answer(self.answers, &mut self.api, &mut self.rules, event);
        };
        let (met, request) = (self.met(), codec::hash_bytes(&event.to_bytes()));
        if let Some(Answered { after, response, wrong, .. }) = memo.recall(&met, request) {
            (self.api, self.rules) = (after.api, after.rules);
            return (response, wrong);
        }
        let (response, wrong) = rulebook::answer(self.answers, &mut self.api, &mut self.rules, event);
        memo.keep(met, request, self.met(), response.clone(), wrong.clone());
        (response, wrong)
    }

    fn met(&self) -> Met {
        Met { api: self.api.clone(), rules: self.rules.clone() }
    }

    /// From now on it remembers what became of requests, for all of its copies.
    pub fn remember_requests(&mut self) {
        self.memo = Some(Memo::default());
    }

    /// The same write of this status to this store came before: the answer, and what it stirs up.
    pub(super) fn written_before(
        &mut self,
        at: Time,
        pod: PodUid,
        status: Digest,
        agent_listens: bool,
    ) -> Option<(Response, Stirred)> {
        let Answered { after, response, .. } = self.memo.as_ref()?.recall(&self.met(), status)?;
        let name = self.names.get(&pod)?.clone();
        let before = self.api.get("Pod", &name.namespace, &name.name).cloned();
        (self.api, self.rules) = (after.api, after.rules);
        let stirred = self.stir(at, agent_listens, before.as_deref());
        Some((response, stirred))
    }

    /// What a status write will meet, if what becomes of it is to be remembered.
    pub(super) fn to_remember(&self) -> Option<Met> {
        self.memo.as_ref().map(|_| self.met())
    }

    /// Remembers what became of a status write, where it is known by less than the whole request.
    pub(super) fn remember(&self, before: Met, status: Digest, response: &Response) {
        if let Some(memo) = &self.memo {
            memo.keep(before, status, self.met(), response.clone(), None);
        }
    }

    /// The pod that an object is.
    fn read(&self, object: &Arc<Value>) -> Result<Arc<Pod>, Undeliverable> {
        if let Some(known) = self.memo.as_ref().and_then(|memo| memo.pod(object)) {
            return Ok(known);
        }
        let pod = nodefold_k8s::pod_from_json(object, Source::Api).map_err(|problems| {
            Undeliverable(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        let pod = Arc::new(pod);
        if let Some(memo) = &self.memo {
            memo.keep_pod(object, &pod);
        }
        Ok(pod)
    }

    /// The node's name.
    pub fn node_name(&self) -> &str {
        &self.node_name
    }

    /// A UID for a new object: the same in every run, whatever else was created before.
    pub fn next_uid(&mut self, kind: &str, namespace: &str, name: &str) -> PodUid {
        let of = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        let given = self.uids_given.entry(of).or_insert(0);
        *given += 1;
        let seed = (*given, kind.to_owned(), namespace.to_owned(), name.to_owned());
        let bits = codec::hash(&seed).0;
        // The version and variant bits of a random UUID, as an API server's are.
        PodUid(bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62)
    }

    /// What the scheduler does, and a kubelet with its static pods: the pod is bound to the node.
    pub fn bind(&self, object: &mut Value) {
        if object["kind"] == "Pod" && object["spec"].is_object() && object["spec"]["nodeName"].is_null() {
            object["spec"]["nodeName"] = json!(&*self.node_name);
        }
    }

    /// What the ServiceAccount admission plugin does, and what a client that re-applies its manifest relies on: the pod runs
    /// under the namespace's default account (api-side S28). A static pod never met the plugin, and its mirror may name none.
    pub fn give_account(&self, object: &mut Value) {
        if object["kind"] != "Pod" || !object["spec"].is_object() {
            return;
        }
        if object["spec"]["serviceAccountName"].is_null() && object["spec"]["serviceAccount"].is_null() {
            object["spec"]["serviceAccountName"] = json!("default");
        }
    }

    /// `before` is the pod whose status was written, as it was.
    fn stir(&mut self, at: Time, agent_listens: bool, before: Option<&Value>) -> Stirred {
        let mut stirred = Stirred::default();
        // Asked after each request, a watch is never behind what the store keeps.
        let changes: Vec<Change> = self
            .api
            .watch_from(self.watched_up_to)
            .map(|changes| changes.cloned().collect())
            .unwrap_or_default();
        self.watched_up_to = self.api.resource_version();
        for change in changes {
            let object = &*change.object;
            let deleted = change.change == ChangeType::Deleted;
            if deleted {
                self.rules.gone(object);
            }
            match &*change.kind {
                "Pod" if object["spec"]["nodeName"] == *self.node_name => {
                    if let Some(uid) = before.and_then(|before| self.only_status_changed(before, object)) {
                        if agent_listens {
                            stirred.gates.extend(self.gate_news(uid, object));
                        }
                        continue;
                    }
                    if let Some(mirror) = nodefold_k8s::mirror_from_json(object) {
                        self.mirror_changed(at, pod_ref(object), mirror, deleted, agent_listens);
                        continue;
                    }
                    match self.read(&change.object) {
                        Ok(pod) => {
                            let uid = pod.uid;
                            self.pod_changed(at, pod, Source::Api, deleted, agent_listens);
                            if deleted {
                                self.gates_told.retain(|(of, _), _| *of != uid);
                            } else if agent_listens {
                                stirred.gates.extend(self.gate_news(uid, object));
                            }
                        }
                        Err(undeliverable) => stirred.undeliverable = Some(undeliverable),
                    }
                }
                _ => {
                    if let Some(reference) = nodefold_k8s::object_ref(object)
                        && agent_listens
                        && self.is_watched(&reference)
                    {
                        stirred.objects.push(reference);
                    }
                }
            }
        }
        stirred
    }

    /// The pod, if the agent has it as it is: of a status, only a terminal phase and the QoS class are read by a node.
    fn only_status_changed(&self, before: &Value, after: &Value) -> Option<PodUid> {
        let read = |object: &Value| {
            let text = |field: &str| object["status"][field].as_str().unwrap_or_default().to_owned();
            (Some(text("phase")).filter(|phase| phase == "Succeeded" || phase == "Failed"), text("qosClass"))
        };
        let uid = nodefold_k8s::pod_uid(after["metadata"]["uid"].as_str().unwrap_or_default());
        (self.sent.contains_key(&uid) && read(before) == read(after)).then_some(uid)
    }

    fn pod_changed(&mut self, at: Time, pod: Arc<Pod>, source: Source, removed: bool, agent_listens: bool) {
        let uid = pod.uid;
        let name = PodRef { namespace: pod.namespace.to_string(), name: pod.name.to_string() };
        self.named(uid, &name);
        if !removed && self.newest.get(&name) != Some(&uid) {
            self.newest.insert(name, uid);
        }
        let hears = agent_listens && !(self.cut && source == Source::Api);
        if !hears || (!removed && self.sent.get(&uid) == Some(&pod)) {
            return;
        }
        let delay = match source {
            Source::Api => latency::WATCH,
            Source::File => latency::FILE_WATCH,
        };
        let what = if removed { News::Removed } else { News::Pod(pod.clone()) };
        let change = OnTheWay { due: at.after(delay), what, listed: false };
        if removed {
            self.sent.remove(&uid);
        } else {
            self.sent.insert(uid, pod);
        }
        self.queues.entry((source, uid)).or_default().push_back(change);
    }

    fn named(&mut self, uid: PodUid, name: &PodRef) {
        if self.names.contains_key(&uid) {
            return;
        }
        self.names.insert(uid, name.clone());
        self.newly_named.push(uid);
        self.lives.entry(name.clone()).or_default().push(uid);
    }

    /// A mirror pod shares its static pod's name, but is an object of its own.
    fn mirror_changed(&mut self, at: Time, name: PodRef, mirror: Mirror, removed: bool, agent_listens: bool) {
        let uid = mirror.uid;
        self.named(uid, &name);
        if !agent_listens || self.cut || (!removed && self.sent_mirrors.get(&uid) == Some(&mirror)) {
            return;
        }
        let what = if removed {
            self.sent_mirrors.remove(&uid);
            News::MirrorGone
        } else {
            self.sent_mirrors.insert(uid, mirror.clone());
            News::Mirror(mirror)
        };
        let change = OnTheWay { due: at.after(latency::WATCH), what, listed: false };
        self.queues.entry((Source::Api, uid)).or_default().push_back(change);
    }

    /// A manifest file appears or changes. An edited static pod is another pod: the former goes first.
    pub fn write_file(&mut self, at: Time, pod: Pod, agent_listens: bool) {
        let name = PodRef { namespace: pod.namespace.to_string(), name: pod.name.to_string() };
        let pod = Arc::new(pod);
        if let Some(former) = self.files.insert(name, pod.clone())
            && former.uid != pod.uid
        {
            self.pod_changed(at, former, Source::File, true, agent_listens);
        }
        self.pod_changed(at, pod, Source::File, false, agent_listens);
    }

    /// A manifest file goes. Whether there was one.
    pub fn remove_file(&mut self, at: Time, name: &PodRef, agent_listens: bool) -> bool {
        match self.files.remove(name) {
            Some(pod) => {
                self.pod_changed(at, pod, Source::File, true, agent_listens);
                true
            }
            None => false,
        }
    }

    /// A pod of that name comes from a file.
    pub fn is_file(&self, name: &PodRef) -> bool {
        self.files.contains_key(name)
    }

    /// The agent is gone: whatever was on its way is lost with its connections.
    pub fn hang_up(&mut self) {
        self.queues.clear();
        self.sent.clear();
        self.sent_mirrors.clear();
        self.gates_told.clear();
        self.referenced_by.clear();
        self.cut = false;
        self.lost.clear();
    }

    /// The API's watch breaks: what was on its way is lost, and nothing comes until it lists anew. False: it had broken.
    pub fn cut(&mut self) -> bool {
        let lost = &mut self.lost;
        self.queues.retain(|(source, uid), queue| {
            if *source == Source::File || queue.iter().any(|change| change.listed) {
                return true;
            }
            match queue.pop_back().map(|change| change.what) {
                Some(gone @ (News::Removed | News::MirrorGone)) => lost.push((*uid, gone)),
                Some(News::Pod(_) | News::Mirror(_)) | None => {}
            }
            false
        });
        !std::mem::replace(&mut self.cut, true)
    }

    /// The watch is back: a list shows what changed meanwhile, each object's newest version only. What was lost on its way
    /// counts as sent, so everything comes again.
    pub fn reconnect(&mut self, at: Time) -> Result<(), Undeliverable> {
        self.cut = false;
        let due = at.after(latency::API_LIST);
        let pods = self.listed_pods()?;
        let mirrors = self.listed_mirrors();
        let files: BTreeSet<PodUid> = self.files.values().map(|pod| pod.uid).collect();
        let is_gone = |uid: &&PodUid| !files.contains(uid) && !pods.iter().any(|pod| pod.uid == **uid);
        let mut news = std::mem::take(&mut self.lost);
        news.extend(self.sent.keys().filter(is_gone).map(|uid| (*uid, News::Removed)));
        let is_gone = |uid: &&PodUid| !mirrors.iter().any(|mirror| mirror.uid == **uid);
        news.extend(self.sent_mirrors.keys().filter(is_gone).map(|uid| (*uid, News::MirrorGone)));
        news.extend(pods.into_iter().map(|pod| (pod.uid, News::Pod(pod))));
        news.extend(mirrors.into_iter().map(|mirror| (mirror.uid, News::Mirror(mirror))));
        for (uid, what) in news {
            match &what {
                News::Pod(pod) => drop(self.sent.insert(uid, pod.clone())),
                News::Removed => drop(self.sent.remove(&uid)),
                News::Mirror(mirror) => drop(self.sent_mirrors.insert(uid, mirror.clone())),
                News::MirrorGone => drop(self.sent_mirrors.remove(&uid)),
            }
            let change = OnTheWay { due, what, listed: false };
            self.queues.entry((Source::Api, uid)).or_default().push_back(change);
        }
        Ok(())
    }

    /// Changes of a pod that are on their way come this much later. False: there are none.
    pub fn delay(&mut self, source: Source, uid: PodUid, by: Nanos) -> bool {
        match self.queues.get_mut(&(source, uid)) {
            Some(queue) => {
                for change in queue {
                    change.due = change.due.after(by);
                }
                true
            }
            None => false,
        }
    }

    /// The authorizer lags behind: the node may not read this object yet.
    pub fn forbid(&mut self, object: ObjectRef) {
        self.forbidden.insert(object);
    }

    /// It may. False: it might all the time.
    pub fn permit(&mut self, object: &ObjectRef) -> bool {
        self.forbidden.remove(object)
    }

    /// What it may not read.
    pub fn forbidden(&self) -> &BTreeSet<ObjectRef> {
        &self.forbidden
    }

    /// A pod among all that had its name: `default/web`, and `default/web~2` for the second of that name.
    pub fn label(&self, uid: PodUid) -> String {
        let Some(name) = self.names.get(&uid) else { return uid.to_string() };
        match self.lives.get(name).and_then(|lives| lives.iter().position(|life| *life == uid)) {
            Some(0) | None => name.to_string(),
            Some(earlier) => format!("{name}~{}", earlier + 1),
        }
    }

    /// Objects that the agent watches.
    pub fn watched(&self) -> impl Iterator<Item = &ObjectRef> {
        self.referenced_by.values().flatten()
    }

    /// The stored pods.
    pub fn pods(&self) -> impl Iterator<Item = &Value> {
        self.api.list("Pod").map(|pod| &**pod)
    }

    /// A stored object.
    pub fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.api.get(kind, namespace, name).map(|object| &**object)
    }

    /// The manifest files' pods.
    pub fn files(&self) -> impl Iterator<Item = (&PodRef, &Arc<Pod>)> {
        self.files.iter()
    }

    /// A new agent lists a source: everything there is comes anew, then the end of the list.
    pub fn list(&mut self, at: Time, source: Source) -> Result<Time, Undeliverable> {
        let (pods, delay): (Vec<Arc<Pod>>, Nanos) = match source {
            Source::File => (self.files.values().cloned().collect(), latency::FILE_LIST),
            Source::Api => (self.listed_pods()?, latency::API_LIST),
        };
        let due = at.after(delay);
        for pod in pods {
            self.sent.insert(pod.uid, pod.clone());
            let change = OnTheWay { due, what: News::Pod(pod.clone()), listed: true };
            self.queues.entry((source, pod.uid)).or_default().push_back(change);
        }
        if source == Source::Api {
            for mirror in self.listed_mirrors() {
                self.sent_mirrors.insert(mirror.uid, mirror.clone());
                let queue = self.queues.entry((source, mirror.uid)).or_default();
                queue.push_back(OnTheWay { due, what: News::Mirror(mirror), listed: true });
            }
        }
        Ok(due)
    }

    fn listed_mirrors(&self) -> Vec<Mirror> {
        let stored = |(uid, name): (&PodUid, &PodRef)| {
            let object = self.api.get("Pod", &name.namespace, &name.name)?;
            nodefold_k8s::mirror_from_json(object).filter(|mirror| mirror.uid == *uid)
        };
        self.names.iter().filter_map(stored).collect()
    }

    fn listed_pods(&self) -> Result<Vec<Arc<Pod>>, Undeliverable> {
        let mut pods = Vec::new();
        for (uid, name) in &self.names {
            if self.newest.get(name) != Some(uid) {
                continue;
            }
            let Some(object) = self.api.get("Pod", &name.namespace, &name.name) else { continue };
            if nodefold_k8s::mirror_from_json(object).is_some() {
                continue;
            }
            pods.push(self.read(object)?);
        }
        Ok(pods)
    }

    fn gate_news(&self, uid: PodUid, object: &Value) -> Vec<(PodUid, String)> {
        let is_news = |(condition, met): &(Name, bool)| {
            self.gates_told.get(&(uid, condition.clone())).copied().unwrap_or(false) != *met
        };
        let gates = nodefold_k8s::readiness_gates(object).into_iter().filter(is_news);
        gates.map(|(condition, _)| (uid, condition.to_string())).collect()
    }

    /// A new agent is told of every condition that a readiness gate names.
    pub fn list_gates(&self) -> Vec<(PodUid, String)> {
        let of = |object: &Arc<Value>| {
            let uid = nodefold_k8s::pod_uid(object["metadata"]["uid"].as_str().unwrap_or_default());
            let ours = object["spec"]["nodeName"] == *self.node_name;
            let gates = nodefold_k8s::readiness_gates(object).into_iter().filter(|_| ours);
            gates.map(|(condition, _)| (uid, condition.to_string())).collect::<Vec<_>>()
        };
        self.api.list("Pod").flat_map(of).collect()
    }

    /// Whether that condition is met now, for the agent, which knows it from here on. `None`: the pod is gone.
    pub fn tell_gate(&mut self, uid: PodUid, condition: &Name) -> Option<bool> {
        let gates = nodefold_k8s::readiness_gates(self.api.pod_by_uid(uid)?);
        let met = gates.into_iter().find(|(kind, _)| kind == condition)?.1;
        self.gates_told.insert((uid, condition.clone()), met);
        Some(met)
    }

    /// Some change of the pod is on its way.
    pub fn is_on_the_way(&self, uid: PodUid) -> bool {
        self.queues.contains_key(&(Source::Api, uid))
    }

    /// Pods with changes on their way: from where, which pod, how many, when the first and the last are due.
    pub fn on_the_way(&self) -> impl Iterator<Item = (Source, PodUid, usize, Time, Time)> {
        self.queues.iter().filter_map(|((source, uid), queue)| {
            let (first, last) = (queue.front()?, queue.back()?);
            Some((*source, *uid, queue.len(), first.due, last.due))
        })
    }

    /// Some of the source's first list is still on its way.
    pub fn is_listing(&self, source: Source) -> bool {
        self.queues.iter().any(|((s, _), queue)| *s == source && queue.iter().any(|change| change.listed))
    }

    /// Takes a pod's next change, or all of them as one, off the way. Objects that it newly refers to come with it.
    pub fn deliver(&mut self, source: Source, uid: PodUid, all: bool) -> Option<(Fact, Vec<ObjectRef>)> {
        let queue = self.queues.get_mut(&(source, uid))?;
        let taken = if all { queue.pop_back() } else { queue.pop_front() };
        if all {
            queue.clear();
        }
        if queue.is_empty() {
            self.queues.remove(&(source, uid));
        }
        let full_name = |server: &Server| {
            let name = server.names.get(&uid)?;
            Some((Name::from(name.namespace.as_str()), Name::from(name.name.as_str())))
        };
        let pod = match taken?.what {
            News::Pod(pod) => pod,
            News::Removed => {
                self.referenced_by.remove(&uid);
                return Some((Fact::PodRemoved { pod: uid }, Vec::new()));
            }
            News::Mirror(mirror) => {
                let (namespace, name) = full_name(self)?;
                return Some((Fact::MirrorSeen { namespace, name, mirror }, Vec::new()));
            }
            News::MirrorGone => {
                let (namespace, name) = full_name(self)?;
                return Some((Fact::MirrorGone { namespace, name, mirror: uid }, Vec::new()));
            }
        };
        let mut new = Vec::new();
        for object in pod.spec.volumes.iter().flat_map(|volume| volume.source.objects()) {
            let known = self.is_watched(&object.object);
            self.referenced_by.entry(uid).or_default().insert(object.object.clone());
            if !known {
                new.push(object.object.clone());
            }
        }
        Some((Fact::PodApplied(pod), new))
    }

    /// A delivery was lost: it comes again with a list.
    pub fn postpone(&mut self, source: Source, uid: PodUid, now: Time) {
        if let Some(queue) = self.queues.get_mut(&(source, uid)) {
            for change in queue {
                change.due = change.due.max(now.after(latency::RELIST));
            }
        }
    }

    fn is_watched(&self, object: &ObjectRef) -> bool {
        self.referenced_by.values().any(|objects| objects.contains(object))
    }

    /// The newest pod of that name has, or is to have, a container of this name.
    pub fn wants_container(&self, name: &PodRef, container: &str) -> bool {
        let is_it = |c: &Arc<nodefold_core::spec::Container>| &*c.name == container;
        let listed = |spec: &Value, list: &str| {
            spec[list].as_array().is_some_and(|entries| entries.iter().any(|c| c["name"] == *container))
        };
        match (self.files.get(name), self.pod(name)) {
            (Some(file), _) => file.spec.containers.iter().chain(&file.spec.init_containers).any(is_it),
            (None, Some(pod)) => {
                ["containers", "initContainers"].iter().any(|list| listed(&pod["spec"], list))
            }
            (None, None) => false,
        }
    }

    /// A pod that refers to the object, for rules that name pods.
    pub fn watcher_of(&self, object: &ObjectRef) -> Option<PodUid> {
        self.referenced_by.iter().find(|(_, objects)| objects.contains(object)).map(|(uid, _)| *uid)
    }

    /// What the agent hears of an object now.
    pub fn object_fact(&self, object: &ObjectRef) -> Fact {
        match self.referenced(object).filter(|_| !self.forbidden.contains(object)) {
            Some(value) => {
                let version: ObjectVersion = nodefold_k8s::object_version(value, &CONTENT_KEY);
                Fact::ObjectSeen { object: object.clone(), version }
            }
            None => Fact::ObjectGone { object: object.clone() },
        }
    }

    /// The object that a reference means, if it exists.
    pub fn referenced(&self, object: &ObjectRef) -> Option<&Value> {
        let kind = match object.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::ClusterTrustBundle => "ClusterTrustBundle",
        };
        self.api.get(kind, &object.namespace, &object.name).map(|object| &**object)
    }

    /// The stored pod of that name.
    pub fn pod(&self, name: &PodRef) -> Option<&Value> {
        self.api.get("Pod", &name.namespace, &name.name).map(|pod| &**pod)
    }

    /// The newest pod that ever had that name.
    pub fn uid(&self, name: &PodRef) -> Option<PodUid> {
        self.newest.get(name).copied()
    }

    /// The newest pods of all names there ever were.
    pub fn newest(&self) -> &BTreeMap<PodRef, PodUid> {
        &self.newest
    }

    /// A pod's name.
    pub fn name(&self, uid: PodUid) -> Option<&PodRef> {
        self.names.get(&uid)
    }

    /// Pods that got a name since this was asked last.
    pub fn take_newly_named(&mut self) -> Vec<PodUid> {
        std::mem::take(&mut self.newly_named)
    }

    /// Names in flight are refused, or left to the node to keep apart.
    pub fn refuse_names_in_flight(&mut self, refuse: bool) {
        self.api.refuse_names_in_flight(refuse);
        self.is_trusting = !refuse;
    }

    /// Writes what of it decides what comes (see `canonical.rs` beside): objects, what is remembered beside them, and what is
    /// on its way.
    pub(super) fn canonical(&self, who: Option<&Renaming>, out: &mut Vec<u8>) {
        let stored = match who {
            None => self.api.hash(|api| hashed(|out| objects(api, None, out))),
            Some(_) => hashed(|out| objects(&self.api, who, out)),
        };
        out.extend(stored.to_le_bytes());
        let judged = |pod: &Arc<Value>| (self.rules.memory(pod), renamed_pod(who, pod));
        let judged = self.api.list("Pod").map(judged).filter(|(memory, _)| memory.is_some());
        all(who, judged, out, |(memory, uid), out| {
            codec::encode(&(uid, memory), out);
        });
        let renamed = |uid: &PodUid| who.map_or(*uid, |who| who.of(*uid));
        all(who, self.newest.values(), out, |uid, out| codec::encode(&renamed(uid), out));
        all(who, &self.queues, out, |((source, uid), queue), out| {
            codec::encode(&(source, renamed(uid), queue.len() as u64), out);
            for change in queue.iter() {
                let what = match &change.what {
                    News::Pod(pod) => {
                        let deletion = pod.deletion.map(|deletion| deletion.grace);
                        (0u8, Some((codec::hash(&*pod.spec), pod.generation, deletion)), None)
                    }
                    News::Removed => (1, None, None),
                    News::Mirror(mirror) => (2, None, Some(mirror)),
                    News::MirrorGone => (3, None, None),
                };
                codec::encode(&(what, change.listed), out);
            }
        });
        codec::encode(&(self.cut, self.files.len() as u64), out);
        all(who, &self.referenced_by, out, |(uid, objects), out| {
            codec::encode(&(renamed(uid), objects.iter().collect::<Vec<_>>()), out);
        });
    }

    /// Pods of the API that no decision of a node prefers to each other, whichever UIDs and names they have: as long as all
    /// pods together ask for no room, none of them waits for another's.
    pub(super) fn alike(&self) -> Vec<PodUid> {
        if !self.files.is_empty() || !self.api.list("Pod").all(|pod| asks_for_no_room(pod)) {
            return Vec::new();
        }
        let uid =
            |pod: &Arc<Value>| nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or_default());
        let mut pods: Vec<PodUid> = self.api.list("Pod").map(uid).collect();
        pods.sort();
        pods
    }

    /// The store's own digest.
    pub fn digest(&self) -> nodefold_core::Digest {
        self.api.digest()
    }
}

/// The stored objects.
fn objects(api: &Api, who: Option<&Renaming>, out: &mut Vec<u8>) {
    all(who, api.pods_and_holds(), out, |(pod, holds), out| {
        renamed_object(who, pod, out);
        codec::encode(holds, out);
    });
    for kind in ["ConfigMap", "Secret", "ClusterTrustBundle"] {
        api.list(kind).for_each(|object| canonical::object(object, out));
    }
}

/// It needs nothing of the node that another pod could need, and is as important as any.
fn asks_for_no_room(pod: &Value) -> bool {
    let spec = &pod["spec"];
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let of_pod = ["resources", "overhead", "priority", "priorityClassName", "hostNetwork", "resourceClaims"];
    let of_container = ["resources", "ports"];
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let containers = || lists.iter().filter_map(|list| spec[*list].as_array()).flatten();
    of_pod.iter().all(|field| is_nothing(&spec[*field]) || spec[*field] == 0 || spec[*field] == false)
        && containers().all(|container| of_container.iter().all(|field| is_nothing(&container[*field])))
}

/// The name that an object has.
fn pod_ref(object: &Value) -> PodRef {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    PodRef { namespace: text("namespace"), name: text("name") }
}
