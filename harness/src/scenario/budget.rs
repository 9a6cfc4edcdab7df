//! `check:`: how often what may go wrong when a scenario is explored exhaustively.

use super::reader::Reader;
use nodefold_k8s::InputError;

/// How much of each.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The agent dies.
    pub agent_crashes: u8,
    /// The host dies.
    pub host_crashes: u8,
    /// An operation on its way fails, for good or with an unknown end.
    pub failures: u8,
    /// A process ends by itself.
    pub exits: u8,
    /// Its deadlines come while operations are on their way, which then are slow.
    pub slow: bool,
}

impl Budget {
    /// Reads `check:`.
    pub(super) fn read(field: &Reader<'_>) -> Result<Budget, InputError> {
        field.only(&["agentCrashes", "hostCrashes", "failures", "exits", "slow"])?;
        let count = |key: &str| -> Result<u8, InputError> {
            let Some(number) = field.get(key)? else { return Ok(0) };
            u8::try_from(number.whole()?)
                .map_err(|_| number.error("more than any search can follow", "use at most 255"))
        };
        Ok(Budget {
            agent_crashes: count("agentCrashes")?,
            host_crashes: count("hostCrashes")?,
            failures: count("failures")?,
            exits: count("exits")?,
            slow: match field.get("slow")? {
                Some(word) => word.boolean()?,
                None => false,
            },
        })
    }
}
