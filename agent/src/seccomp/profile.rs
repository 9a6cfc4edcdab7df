//! Seccomp profiles of the node's operator (`seccompProfile: {type: Localhost}`): JSON as runtimes read it. Names that this
//! machine has no call for are left out, as runtimes do; actions that can't be had are refused.

use super::{Instruction, compile};
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use syscalls::Sysno;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: String,
    #[serde(default)]
    default_errno_ret: Option<u32>,
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

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The programs of a profile. The first lets through what any entry names and does the default with the rest; one more for
/// each other action does that with its entries. Of several programs' verdicts the kernel takes the strictest.
pub fn programs(text: &[u8]) -> Result<Vec<Vec<Instruction>>, String> {
    let profile: Profile = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let default = action(&profile.default_action, profile.default_errno_ret)?;
    let mut named = Rules::new();
    let mut others: Vec<(SeccompAction, Rules)> = Vec::new();
    for entry in &profile.syscalls {
        let wanted = action(&entry.action, entry.errno_ret)?;
        for name in &entry.names {
            let Ok(call) = Sysno::from_str(name) else { continue };
            let number = i64::from(call.id());
            add(&mut named, number, &entry.args)?;
            if wanted != SeccompAction::Allow {
                let at = others.iter().position(|(known, _)| *known == wanted).unwrap_or(others.len());
                if at == others.len() {
                    others.push((wanted.clone(), Rules::new()));
                }
                add(&mut others[at].1, number, &entry.args)?;
            }
        }
    }
    let mut programs = Vec::new();
    if default != SeccompAction::Allow {
        programs.push(compile(named, default, SeccompAction::Allow)?);
    }
    for (wanted, rules) in others {
        programs.push(compile(rules, SeccompAction::Allow, wanted)?);
    }
    Ok(programs)
}

/// One more way in which a call is meant. Without conditions it is meant however it is called.
fn add(rules: &mut Rules, number: i64, arguments: &[Argument]) -> Result<(), String> {
    let known = rules.get(&number).is_some_and(Vec::is_empty);
    if known || arguments.is_empty() {
        rules.insert(number, Vec::new());
        return Ok(());
    }
    let mut conditions = Vec::new();
    for argument in arguments {
        let (operator, value) = match argument.op.as_str() {
            "SCMP_CMP_NE" => (SeccompCmpOp::Ne, argument.value),
            "SCMP_CMP_LT" => (SeccompCmpOp::Lt, argument.value),
            "SCMP_CMP_LE" => (SeccompCmpOp::Le, argument.value),
            "SCMP_CMP_EQ" => (SeccompCmpOp::Eq, argument.value),
            "SCMP_CMP_GE" => (SeccompCmpOp::Ge, argument.value),
            "SCMP_CMP_GT" => (SeccompCmpOp::Gt, argument.value),
            "SCMP_CMP_MASKED_EQ" => (SeccompCmpOp::MaskedEq(argument.value), argument.value_two),
            other => return Err(format!("{other} compares nothing that is known")),
        };
        let condition = SeccompCondition::new(argument.index, SeccompCmpArgLen::Qword, operator, value);
        conditions.push(condition.map_err(|error| error.to_string())?);
    }
    let rule = SeccompRule::new(conditions).map_err(|error| error.to_string())?;
    rules.entry(number).or_default().push(rule);
    Ok(())
}

fn action(name: &str, errno: Option<u32>) -> Result<SeccompAction, String> {
    Ok(match name {
        "SCMP_ACT_ALLOW" => SeccompAction::Allow,
        "SCMP_ACT_ERRNO" => SeccompAction::Errno(errno.unwrap_or(libc::EPERM as u32)),
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => SeccompAction::KillThread,
        "SCMP_ACT_KILL_PROCESS" => SeccompAction::KillProcess,
        "SCMP_ACT_TRAP" => SeccompAction::Trap,
        "SCMP_ACT_LOG" => SeccompAction::Log,
        other => return Err(format!("this node can't do {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_runtimes_read_it() {
        let count = |text: &str| programs(text.as_bytes()).map(|programs| programs.len());
        let deny = r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
            {"names": ["read", "write", "no_such_call"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
            {"names": ["ptrace"], "action": "SCMP_ACT_LOG"}]}"#;
        assert_eq!(count(deny), Ok(2));
        let allow = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}"#;
        assert_eq!(count(allow), Ok(1));
        assert!(count(r#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#).expect_err("refused").contains("NOTIFY"));
        assert!(count("{}").is_err());
    }
}
