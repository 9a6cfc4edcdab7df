//! Crashes and starts. An agent's crash loses what only the agent had; a host's loses all but the disk. Rules of `hold`
//! and `fail` are the world's and stay.

use super::choice::Choice;
use super::inflight::Phase;
use super::{World, WorldError, latency};
use crate::record::Record;
use nodefold_core::codec;
use nodefold_core::ids::Source;

impl World {
    /// The agent dies; the service manager will start it again. Processes, mounts and what the runtime is about to do
    /// live on; calls that hang, answers, and what the agent did itself are lost with it.
    pub fn crash_agent(&mut self) {
        self.records.push(Record::Crashed { at: self.now, host: false });
        self.lose_agent();
        self.pending.insert(Choice::AgentStarts, self.now.after(latency::AGENT_RESTART));
    }

    /// The host loses power; it boots again.
    pub fn crash_host(&mut self) {
        self.records.push(Record::Crashed { at: self.now, host: true });
        self.lose_agent();
        self.agent.lose_power();
        self.inflight.clear();
        self.pending.retain(|choice, _| matches!(choice, Choice::Permitted(_) | Choice::DiskFreed));
        self.faults.echoes.clear();
        self.runtime.lose_power(self.now);
        self.mounts.lose_power();
        self.boots += 1;
        self.pending.insert(Choice::AgentStarts, self.now.after(latency::HOST_REBOOT));
    }

    fn lose_agent(&mut self) {
        self.keep_lingering();
        self.agent.crash();
        self.faults.crash = None;
        self.server.hang_up();
        self.probes.clear();
        self.pending.retain(|choice, _| match choice {
            Choice::ProcessEnds { .. }
            | Choice::GraceOver { .. }
            | Choice::Echo(_)
            | Choice::Permitted(_)
            | Choice::DiskFreed => true,
            Choice::Effect(_)
            | Choice::Answer(_)
            | Choice::ExitNoticed { .. }
            | Choice::SandboxNoticed { .. }
            | Choice::ProbeReported { .. }
            | Choice::Deliver { .. }
            | Choice::SourceListed(_)
            | Choice::ObjectReported(_)
            | Choice::GateReported { .. }
            | Choice::UsageMeasured { .. }
            | Choice::NodeReported
            | Choice::Reconnect
            | Choice::Tick
            | Choice::AgentStarts => false,
        });
        self.inflight.retain(|key, op| {
            op.orphan = true;
            match op.phase {
                Phase::Running { .. } => key.kind.in_runtime(),
                Phase::Held { .. } | Phase::Done { .. } => false,
            }
        });
    }

    /// The agent starts: a new epoch, then what its sources have.
    pub(super) fn agent_starts(&mut self) -> Result<(), WorldError> {
        let boot_id = codec::hash(&(u64::from(self.boots), "boot".to_owned())).0;
        let (started, recovered) = self.agent.start(boot_id)?;
        if let Some(recovered) = recovered {
            if let Some(unlike) = recovered.unlike {
                self.broken("D2", unlike);
            } else if recovered.before != recovered.after {
                let what = format!(
                    "folding the journal gives {:032x}, the live digest was {:032x}",
                    recovered.after.0, recovered.before.0
                );
                self.broken("D1", what);
            }
        }
        if let (Some(node), Some(refinement)) = (self.agent.brain().node(), &mut self.refinement) {
            // What the crash lost is no step of the node's.
            refinement.resync(node);
        }
        self.tell(started)?;
        if self.facts != self.told {
            self.tell_node_facts()?;
        }
        // A fault may have struck while it heard these.
        if !self.agent.is_alive() {
            return Ok(());
        }
        for source in [Source::File, Source::Api] {
            let listed = self.server.list(self.now, source)?;
            self.pending.insert(Choice::SourceListed(source), listed);
        }
        for (pod, condition) in self.server.list_gates() {
            let reported = Choice::GateReported { pod, condition };
            self.pending.insert(reported, self.now.after(latency::API_LIST));
        }
        self.measure_all();
        Ok(())
    }
}
