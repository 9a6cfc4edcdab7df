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
    /// A list of the runtime has nothing in it and says that it is not whole.
    pub partial_lists: u8,
    /// So often the node's deadlines come before the story is told; `None`: as often as it likes. What is tried for ever has
    /// no end else.
    pub patience: Option<u8>,
    /// Its deadlines come while operations are on their way, which then are slow.
    pub slow: bool,
}

impl Budget {
    /// Reads `check:`.
    pub(super) fn read(field: &Reader<'_>) -> Result<Budget, InputError> {
        field.only(&[
            "agentCrashes",
            "hostCrashes",
            "failures",
            "exits",
            "partialLists",
            "patience",
            "slow",
        ])?;
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
            partial_lists: count("partialLists")?,
            patience: field.get("patience")?.map(|_| count("patience")).transpose()?,
            slow: match field.get("slow")? {
                Some(word) => word.boolean()?,
                None => false,
            },
        })
    }
}
