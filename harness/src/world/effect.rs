//! Operations take effect on the host, and the agent hears how they ended.

use super::choice::Choice;
use super::content;
use super::environment;
use super::inflight::{Fate, OpKey, Phase};
use super::rules::Operation;
use super::runtime::{Container, Sandbox, State};
use super::writes::refused;
use super::{World, WorldError, latency};
use nodefold_core::codec;
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{ErrorClass, Exit, Fact, OpError};
use nodefold_core::ids::{ContainerId, PodUid, VolumeId};
use nodefold_core::spec::{PodSpec, Volume};
use std::collections::BTreeMap;

/// What an operation did, or why it did not.
type Done = Result<Option<Fact>, OpError>;

impl World {
    /// An operation takes effect.
    pub(super) fn effect(&mut self, key: &OpKey) -> Result<(), WorldError> {
        let Some(op) = self.inflight.get(key) else { return Ok(()) };
        let (command, fate) = (op.command.clone(), op.fate.clone());
        let by_rule = match Operation::covering(key.kind) {
            Some(operation) => self.take_failure(operation, key.pod, command.action.about().name()),
            None => None,
        };
        // A rule's uncertain failure was done; a fault says for itself.
        let fate = fate.or(by_rule
            .map(|failure| Fate { error: failure.as_error(), done: failure.class == ErrorClass::Uncertain }));
        let answer = match fate {
            Some(Fate { error, done }) => {
                if done {
                    drop(self.perform(&command)?);
                } else if error.class == ErrorClass::Final {
                    self.give_up(&command);
                }
                command.failed(error)
            }
            None => match self.perform(&command)? {
                Ok(fact) => fact,
                Err(error) => command.failed(error),
            },
        };
        let now = self.now;
        let Some(op) = self.inflight.get_mut(key) else { return Ok(()) };
        match answer {
            Some(mut fact) if !op.orphan => {
                leave_out(&mut fact, op.leaves_out);
                op.phase = Phase::Done { at: now, answer: fact };
            }
            // Nobody listens, or the answer comes by itself: a stop's is the exit, a release's the watch.
            Some(_) | None => {
                self.inflight.remove(key);
            }
        }
        Ok(())
    }

    /// What a refusal for good leaves behind: nothing, but that a runtime shows a container which it could not start as
    /// ended with 128.
    fn give_up(&mut self, command: &Command) {
        if let Action::StartContainer { container: id } = &command.action {
            let finished_at = self.faults.node_time(self.now);
            let key = (command.pod, id.clone());
            if let Some(container) =
                self.runtime.containers.get_mut(&key).filter(|container| container.state == State::Created)
            {
                let (code, signal, reason) = (128, None, "StartError".into());
                container.state = State::Exited(Exit { code, signal, reason, started_at: None, finished_at });
            }
        }
    }

    /// The agent hears how an operation ended.
    pub(super) fn answer(&mut self, key: &OpKey) -> Result<(), WorldError> {
        let Some(op) = self.inflight.remove(key) else { return Ok(()) };
        match op.phase {
            Phase::Done { answer, .. } => {
                if let Some(later) = op.echo {
                    self.echo(answer.clone(), later);
                }
                self.tell(answer)
            }
            Phase::Running { .. } | Phase::Held { .. } => Ok(()),
        }
    }

    fn perform(&mut self, command: &Command) -> Result<Done, WorldError> {
        let (op, pod) = (command.op, command.pod);
        Ok(match &command.action {
            Action::MountVolume { volume, spec, .. } => self.mount(command, volume, spec),
            Action::UnmountVolume { volume, .. } => self.unmount(command, volume),
            Action::RefreshVolume { volume, spec, .. } => self.refresh(command, volume, spec),
            Action::PullImage { container, image, policy } => {
                self.images.pull(image, *policy).map(|pulled| {
                    let (image_id, already_present) = (pulled.image_id, pulled.already_present);
                    Some(Fact::ImagePulled {
                        op,
                        pod,
                        container: container.clone(),
                        image_id,
                        already_present,
                    })
                })
            }
            Action::CreateSandbox { attempt, allocated, .. } => {
                let ip = (!allocated.host_network).then(|| self.runtime.next_address());
                self.runtime.sandboxes.insert((pod, *attempt), Sandbox { ready: true, ip: ip.clone() });
                Ok(Some(Fact::SandboxReady { op, pod, attempt: *attempt, ip }))
            }
            Action::StopSandbox { attempt } => self.stop_sandbox(pod, *attempt),
            Action::RemoveSandbox { attempt } => self.remove_sandbox(command, *attempt),
            Action::CreateContainer { container, spec, mounts, sandbox, pod: of, allocated } => {
                let runs_once = allocated
                    .init_containers
                    .iter()
                    .any(|init| init.name == container.name && !PodSpec::is_sidecar(init));
                let new = Container {
                    runs_once,
                    obeys_after: Some(latency::TERM_OBEYED),
                    sandbox: *sandbox,
                    mounts: mounts.clone(),
                    state: State::Created,
                    ending: None,
                    probes: BTreeMap::new(),
                };
                environment::check(&self.server, &of.namespace, spec)
                    .and_then(|()| self.create(command, container, new))
            }
            Action::StartContainer { container } => self.start(command, container),
            Action::StopContainer { container, grace } => {
                self.end(pod, container, |world| world.terminate(pod, container, *grace))
            }
            Action::KillContainer { container } => {
                self.end(pod, container, |world| world.kill(pod, container))
            }
            Action::RemoveContainer { container } => self.remove(command, container),
            Action::ResizeContainer { container, .. } => match self.state(pod, container) {
                Some(State::Running { .. } | State::Created) => {
                    Ok(Some(Fact::ContainerResized { op, pod, container: container.clone() }))
                }
                Some(State::Exited(_)) | None => {
                    Err(refused(format!("container {container} is not running")))
                }
            },
            Action::ResizePod { .. } => Ok(Some(Fact::PodResized { op, pod })),
            Action::RunHook { container, hook, .. } => {
                let error = match self.state(pod, container) {
                    Some(State::Running { .. }) => None,
                    Some(State::Created | State::Exited(_)) | None => Some("container not running".into()),
                };
                Ok(Some(Fact::HookDone { op, pod, container: container.clone(), hook: *hook, error }))
            }
            Action::ObserveMounts => Ok(Some(Fact::MountsObserved { op, mounts: self.mounts.list() })),
            Action::ObserveRuntime => {
                let (sandboxes, containers) = self.runtime.list();
                Ok(Some(Fact::RuntimeObserved { op, complete: true, sandboxes, containers }))
            }
            Action::PublishStatus { .. }
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => return self.write_to_api(command),
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => Ok(None),
        })
    }

    fn mount(&mut self, command: &Command, volume: &VolumeId, spec: &Volume) -> Done {
        let (op, pod) = (command.op, command.pod);
        let content = content::gather(&self.server, &self.images, spec, self.now)?;
        if let Some(other) = self.mounts.put(pod, volume, spec) {
            let what =
                format!("volume {volume} of {pod} was mounted over {other}, which is still on the host");
            self.broken("S6", what);
        }
        let (renew_at, image_digest) = (content.renew_at, content.image_digest);
        Ok(Some(Fact::VolumeMounted { op, pod, volume: volume.clone(), renew_at, image_digest }))
    }

    fn unmount(&mut self, command: &Command, volume: &VolumeId) -> Done {
        let (op, pod) = (command.op, command.pod);
        if let Some(holder) = self.runtime.holder_of(pod, volume).cloned() {
            let what =
                format!("volume {volume} of {pod} was unmounted while container {holder} has it mounted");
            self.broken("S1", what);
        }
        self.mounts.take(pod, volume);
        Ok(Some(Fact::VolumeUnmounted { op, pod, volume: volume.clone() }))
    }

    fn refresh(&mut self, command: &Command, volume: &VolumeId, spec: &Volume) -> Done {
        let (op, pod) = (command.op, command.pod);
        if !self.mounts.has(pod, volume) {
            return Err(refused(format!("volume {volume} is not mounted")));
        }
        let renew_at = content::gather(&self.server, &self.images, spec, self.now)?.renew_at;
        Ok(Some(Fact::VolumeRefreshed { op, pod, volume: volume.clone(), renew_at }))
    }

    fn stop_sandbox(&mut self, pod: PodUid, attempt: u32) -> Done {
        for id in self.living_in(pod, attempt) {
            self.kill(pod, &id);
        }
        if let Some(sandbox) = self.runtime.sandboxes.get_mut(&(pod, attempt)) {
            sandbox.ready = false;
        }
        Ok(Some(Fact::SandboxStopped { pod, attempt }))
    }

    fn remove_sandbox(&mut self, command: &Command, attempt: u32) -> Done {
        let (op, pod) = (command.op, command.pod);
        if self.runtime.sandboxes.get(&(pod, attempt)).is_some_and(|sandbox| sandbox.ready) {
            return Err(refused(format!("sandbox {attempt} is still ready: stop it first")));
        }
        self.runtime.sandboxes.remove(&(pod, attempt));
        Ok(Some(Fact::SandboxRemoved { op, pod, attempt }))
    }

    fn create(&mut self, command: &Command, id: &ContainerId, new: Container) -> Done {
        let (op, pod) = (command.op, command.pod);
        if !self.runtime.sandboxes.get(&(pod, new.sandbox)).is_some_and(|sandbox| sandbox.ready) {
            return Err(refused(format!("sandbox {} not found or not ready", new.sandbox)));
        }
        if let Some(missing) = new.mounts.iter().find(|m| !self.mounts.has(pod, &m.volume)) {
            let message = format!(
                "cannot find volume \"{}\" to mount into container \"{}\"",
                missing.volume.name, id.name
            );
            return Err(refused(message));
        }
        match self.state(pod, id) {
            Some(State::Running { .. } | State::Exited(_)) => {
                return Err(refused(format!("the name {id} is reserved: such a container exists")));
            }
            // A create whose answer was lost, asked again.
            Some(State::Created) => {}
            None => {
                if let Some(namesake) = self.runtime.live_namesake(pod, id).cloned() {
                    self.broken(
                        "S6",
                        format!("container {id} of {pod} was created while {namesake} may still run"),
                    );
                }
                self.runtime.add(pod, id.clone(), new);
            }
        }
        Ok(Some(Fact::ContainerCreated { op, pod, container: id.clone() }))
    }

    fn start(&mut self, command: &Command, id: &ContainerId) -> Done {
        let (op, pod) = (command.op, command.pod);
        let now = self.now;
        match self.runtime.containers.get_mut(&(pod, id.clone())) {
            Some(container) => match &container.state {
                State::Created => {
                    container.state = State::Running { started_at: self.faults.node_time(now) };
                    if let Some((ending, after)) = self.faults.short_lived.get(&(pod, id.name.clone())) {
                        container.ending.get_or_insert(*ending);
                        let ends = Choice::ProcessEnds { pod, container: id.clone() };
                        self.pending.entry(ends).or_insert(now.after(*after));
                    }
                    if container.runs_once && self.faults.healed {
                        self.finishes(pod, id);
                    }
                }
                // A start whose answer was lost, asked again.
                State::Running { .. } => {}
                State::Exited(_) => return Err(refused(format!("container {id} has already ended"))),
            },
            None => return Err(refused(format!("container {id} not found"))),
        }
        Ok(Some(Fact::ContainerStarted { op, pod, container: id.clone() }))
    }

    /// Ends a process. Its exit is the answer; of one that has ended already the exit is told once more, since whoever
    /// asks has not heard.
    fn end(&mut self, pod: PodUid, id: &ContainerId, how: impl FnOnce(&mut World)) -> Done {
        match self.state(pod, id) {
            Some(State::Running { .. }) => {
                how(self);
                Ok(None)
            }
            // Nothing runs in it yet: it only goes.
            Some(State::Created) => {
                self.kill(pod, id);
                Ok(None)
            }
            Some(State::Exited(_)) => {
                let noticed = Choice::ExitNoticed { pod, container: id.clone() };
                if self.agent.is_alive() {
                    self.pending.entry(noticed).or_insert(self.now);
                }
                Ok(None)
            }
            None => Err(refused(format!("container {id} not found"))),
        }
    }

    fn remove(&mut self, command: &Command, id: &ContainerId) -> Done {
        let (op, pod) = (command.op, command.pod);
        match self.state(pod, id) {
            Some(State::Running { .. }) => Err(refused(format!("container {id} is running: stop it first"))),
            Some(State::Created | State::Exited(_)) | None => {
                self.runtime.containers.remove(&(pod, id.clone()));
                Ok(Some(Fact::ContainerRemoved { op, pod, container: id.clone() }))
            }
        }
    }

    fn state(&self, pod: PodUid, id: &ContainerId) -> Option<&State> {
        self.runtime.containers.get(&(pod, id.clone())).map(|c| &c.state)
    }

    fn write_to_api(&mut self, command: &Command) -> Result<Done, WorldError> {
        let user = format!("system:node:{}", self.node_name);
        let before = self.server.to_remember();
        let status = if let (Action::PublishStatus { status, mirror }, Some(_)) = (&command.action, &before) {
            Some(codec::hash(&(command.pod, &**status, mirror)))
        } else {
            None
        };
        if let Some(status) = status {
            let listens = self.agent.is_alive();
            if let Some((response, stirred)) =
                self.server.written_before(self.now, command.pod, status, listens)
            {
                let response = self.answered(&user, "status".to_owned(), response, stirred)?;
                return Ok(self.server.answer_to(command, &response));
            }
        }
        match self.server.asked_by(command) {
            None => Ok(Ok(None)),
            Some(Err(error)) => Ok(Err(error)),
            Some(Ok((what, request))) => {
                let response = self.request(&user, what, request)?;
                if let (Some(before), Some(status)) = (before, status) {
                    self.server.remember(before, status, &response);
                }
                Ok(self.server.answer_to(command, &response))
            }
        }
    }
}

/// A list that the runtime does not vouch for lacks some of its entries: those whose bit, by their place, is set.
fn leave_out(fact: &mut Fact, bits: Option<u64>) {
    let Some(bits) = bits else { return };
    if let Fact::RuntimeObserved { complete, sandboxes, containers, .. } = fact {
        *complete = false;
        let mut place = 0;
        let mut stays = || {
            place += 1;
            bits >> (place % 64) & 1 == 0
        };
        sandboxes.retain(|_| stays());
        containers.retain(|_| stays());
    }
}
