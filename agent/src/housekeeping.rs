//! What a node looks at now and then, off its loop: logs that have grown too large, and what volumes and containers take up of
//! the disk. What they take up is told by thresholds, not each time (DESIGN §3).

use crate::runtime::{LogLimits, Runtime};
use crate::volumes::Volumes;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use nodefold_core::event::{Fact, UsageOf};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Usage is told when it has changed by this part of its limit.
const PART_OF_LIMIT: u64 = 8;

/// How a node keeps house.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Habits {
    /// How often it looks.
    pub interval: Nanos,
    /// When logs are rotated.
    pub logs: LogLimits,
}

impl Default for Habits {
    /// The kubelet's.
    fn default() -> Habits {
        Habits { interval: Nanos::secs(10), logs: LogLimits::default() }
    }
}

/// The thread that does it. It ends when this is dropped, after what it is doing.
pub struct Housekeeping {
    _stop: Sender<()>,
}

impl Housekeeping {
    /// Starts it. Without a thread nothing is rotated or measured; the node runs on.
    pub fn start(
        habits: Habits,
        runtime: &Arc<Runtime>,
        volumes: &Arc<Volumes>,
        facts: Sender<Fact>,
    ) -> Housekeeping {
        let (stop, stopped) = bounded::<()>(0);
        let (runtime, volumes) = (Arc::downgrade(runtime), Arc::downgrade(volumes));
        let interval = Duration::from_nanos(habits.interval.0.max(1));
        let keep = move || {
            let mut told = Told::default();
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let (Some(runtime), Some(volumes)) = (runtime.upgrade(), volumes.upgrade()) else { return };
                runtime.rotate_logs(habits.logs);
                for (pod, taken) in measure(&runtime, &volumes) {
                    for (of, bytes) in told.news(pod, &taken) {
                        facts.send(Fact::UsageReported { pod, of, bytes }).ok();
                    }
                }
            }
        };
        std::thread::Builder::new().name("housekeeping".into()).spawn(keep).ok();
        Housekeeping { _stop: stop }
    }
}

/// What a pod's parts take up.
#[derive(Default)]
struct Taken {
    /// What all of it may.
    limit: Option<u64>,
    parts: Vec<Part>,
}

struct Part {
    of: UsageOf,
    limit: Option<u64>,
    bytes: u64,
}

/// Measures what has a limit. What can't be measured is left out: it is looked at again.
fn measure(runtime: &Runtime, volumes: &Volumes) -> BTreeMap<PodUid, Taken> {
    let mut all: BTreeMap<PodUid, Taken> = BTreeMap::new();
    let limits = runtime.pod_storage_limits();
    for (pod, volume, limit) in volumes.on_disk().unwrap_or_default() {
        let of_pod = limits.get(&pod).copied().flatten();
        if limit.is_none() && of_pod.is_none() {
            continue;
        }
        if let Ok(Some(bytes)) = volumes.usage_of(pod, &volume) {
            let taken = all.entry(pod).or_default();
            taken.limit = of_pod;
            taken.parts.push(Part { of: UsageOf::Volume(volume), limit, bytes });
        }
    }
    for (pod, container, limit) in runtime.measured_containers() {
        let of_pod = limits.get(&pod).copied().flatten();
        if limit.is_none() && of_pod.is_none() {
            continue;
        }
        if let Some(bytes) = runtime.usage_of(pod, &container) {
            let taken = all.entry(pod).or_default();
            taken.limit = of_pod;
            taken.parts.push(Part { of: UsageOf::Container(container), limit, bytes });
        }
    }
    all
}

/// What the core was told last.
#[derive(Default)]
struct Told {
    bytes: BTreeMap<(PodUid, String), u64>,
}

impl Told {
    /// What of a pod is news: a limit that is crossed, its own or the pod's, or much more or less than was told.
    fn news(&mut self, pod: PodUid, taken: &Taken) -> Vec<(UsageOf, u64)> {
        let keys: Vec<(PodUid, String)> = taken.parts.iter().map(|part| (pod, key(&part.of))).collect();
        // Of what is gone, nothing was told.
        self.bytes.retain(|known, _| known.0 != pod || keys.contains(known));
        let told = |key: &(PodUid, String)| self.bytes.get(key).copied().unwrap_or(0);
        let over = |bytes: u64, limit: Option<u64>| limit.is_some_and(|limit| bytes > limit);
        let now = taken.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes));
        let before = keys.iter().fold(0, |sum: u64, key| sum.saturating_add(told(key)));
        let pod_flips = over(now, taken.limit) != over(before, taken.limit);
        let mut news = Vec::new();
        for (part, key) in taken.parts.iter().zip(&keys) {
            let before = told(key);
            let flips = over(part.bytes, part.limit) != over(before, part.limit);
            let least = part.limit.into_iter().chain(taken.limit).min().unwrap_or(u64::MAX);
            let much = part.bytes.abs_diff(before) >= (least / PART_OF_LIMIT).max(1);
            if flips || much || (pod_flips && part.bytes != before) {
                news.push((part.of.clone(), part.bytes));
            }
        }
        for (of, bytes) in &news {
            self.bytes.insert((pod, key(of)), *bytes);
        }
        news
    }
}

fn key(of: &UsageOf) -> String {
    match of {
        UsageOf::Volume(volume) => format!("volume {volume}"),
        UsageOf::Container(container) => format!("container {container}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodefold_core::ids::VolumeId;

    #[test]
    fn only_thresholds_are_told() {
        const NOTHING: [u64; 0] = [];
        let part = |name: &str, limit, bytes| Part {
            of: UsageOf::Volume(VolumeId { name: name.into(), generation: 0 }),
            limit,
            bytes,
        };
        let mut told = Told::default();
        let mut news = |limit, parts: Vec<Part>| -> Vec<u64> {
            told.news(PodUid(1), &Taken { limit, parts }).into_iter().map(|(_, bytes)| bytes).collect()
        };
        assert_eq!(news(None, vec![part("a", Some(800), 10)]), NOTHING, "a little is no news");
        assert_eq!(news(None, vec![part("a", Some(800), 110)]), [110]);
        assert_eq!(news(None, vec![part("a", Some(800), 200)]), NOTHING);
        assert_eq!(news(None, vec![part("a", Some(800), 790)]), [790]);
        assert_eq!(
            news(None, vec![part("a", Some(800), 801)]),
            [801],
            "over the limit is news, however little over"
        );
        assert_eq!(news(None, vec![part("a", Some(800), 802)]), NOTHING);
        assert_eq!(news(None, vec![part("a", Some(800), 800)]), [800]);
        // Together over the pod's limit, each within a step.
        assert_eq!(news(Some(1600), vec![part("a", None, 900), part("b", None, 690)]), [690]);
        assert_eq!(news(Some(1600), vec![part("a", None, 905), part("b", None, 700)]), [905, 700]);
        assert_eq!(news(None, vec![part("a", Some(8000), 1000)]), NOTHING, "it was told as 905");
    }
}
