//! Seccomp profiles of the node's operator (`seccompProfile: {type: Localhost}`): JSON as runtimes read it. Names that this
//! machine has no call for are left out, as runtimes do; actions that can't be had are refused. Who calls by the numbers of an
//! architecture that it doesn't name is killed.

use super::Instruction;
use super::architectures::{self, Names};
use super::program::{Action, Compare, Condition};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: String,
    #[serde(default)]
    default_errno_ret: Option<u32>,
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    syscalls: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    names: Vec<String>,
    action: String,
    #[serde(default)]
    errno_ret: Option<u32>,
    #[serde(default)]
    args: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u8,
    value: u64,
    #[serde(default)]
    value_two: u64,
    op: String,
}

/// The program of a profile. Of several entries that mean a call the strictest counts, as the kernel has it among programs.
pub fn program(text: &[u8]) -> Result<Vec<Instruction>, String> {
    let profile: Profile = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let default = action(&profile.default_action, profile.default_errno_ret)?;
    let mut names = Names::new();
    for entry in &profile.syscalls {
        let wanted = action(&entry.action, entry.errno_ret)?;
        let conditions: Vec<Condition> = entry.args.iter().map(condition).collect::<Result<_, String>>()?;
        for name in &entry.names {
            let arms = names.entry(name.as_str()).or_default();
            arms.push((conditions.clone(), wanted));
            arms.sort_by_key(|(conditions, action)| (*action, conditions.is_empty()));
        }
    }
    let with_forebear = profile.architectures.iter().any(|name| name == architectures::FOREBEAR_NAME);
    super::program::program(&architectures::all(&names, with_forebear), default)
}

fn condition(argument: &Argument) -> Result<Condition, String> {
    let value = argument.value;
    let compare = match argument.op.as_str() {
        "SCMP_CMP_NE" => Compare::NotEqual(value),
        "SCMP_CMP_LT" => Compare::Less(value),
        "SCMP_CMP_LE" => Compare::AtMost(value),
        "SCMP_CMP_EQ" => Compare::Equal(value),
        "SCMP_CMP_GE" => Compare::AtLeast(value),
        "SCMP_CMP_GT" => Compare::More(value),
        "SCMP_CMP_MASKED_EQ" => Compare::Masked(value, argument.value_two),
        other => return Err(format!("{other} compares nothing that is known")),
    };
    Ok((argument.index, compare))
}

fn action(name: &str, errno: Option<u32>) -> Result<Action, String> {
    Ok(match name {
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_ERRNO" => {
            let errno = errno.unwrap_or(libc::EPERM as u32);
            Action::Fail(u16::try_from(errno).map_err(|_| format!("{errno} is no error"))?)
        }
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_TRAP" => Action::Trap,
        "SCMP_ACT_LOG" => Action::Log,
        other => return Err(format!("this node can't do {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_runtimes_read_it() {
        let is_read = |text: &str| program(text.as_bytes()).map(|program| program.len() > 4);
        let deny = r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
            {"names": ["read", "write", "no_such_call"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
            {"names": ["ptrace"], "action": "SCMP_ACT_LOG"}]}"#;
        assert_eq!(is_read(deny), Ok(true));
        let allow = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}"#;
        assert_eq!(is_read(allow), Ok(true));
        assert!(program(br#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#).expect_err("refused").contains("NOTIFY"));
        assert!(program(b"{}").is_err());
    }
}
