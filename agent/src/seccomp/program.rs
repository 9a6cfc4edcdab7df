//! Seccomp programs: what is said of each call, as BPF. One program speaks of all architectures whose calls this machine
//! takes, and finds a call by halving, so that it is short: the kernel runs it for every number there is when it is
//! installed. (seccompiler speaks of one architecture, kills whoever calls by another, and compares number after number.)

use super::Instruction;
use std::collections::BTreeMap;

/// The kernel takes no longer program.
const LONGEST: usize = 4096;
/// Where `seccomp_data` has the number, the architecture and the first argument (8 bytes each, the low half first).
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What becomes of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Its process is killed.
    KillProcess,
    /// Its thread is killed.
    KillThread,
    /// SIGSYS.
    Trap,
    /// It fails with this error.
    Fail(u16),
    /// It is made, and noted by the kernel.
    Log,
    /// It is made.
    Allow,
}

impl Action {
    fn code(self) -> u32 {
        match self {
            Action::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
            Action::KillThread => libc::SECCOMP_RET_KILL_THREAD,
            Action::Trap => libc::SECCOMP_RET_TRAP,
            Action::Fail(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
            Action::Log => libc::SECCOMP_RET_LOG,
            Action::Allow => libc::SECCOMP_RET_ALLOW,
        }
    }
}

/// How an argument is compared, as a 64-bit number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// It is this.
    Equal(u64),
    /// It is not this.
    NotEqual(u64),
    /// Less.
    Less(u64),
    /// At most.
    AtMost(u64),
    /// More.
    More(u64),
    /// At least.
    AtLeast(u64),
    /// The bits of the first that it has are the second.
    Masked(u64, u64),
}

/// A condition on an argument, counted from 0.
pub type Condition = (u8, Compare);

/// What is said of a call: the first arm whose conditions all hold.
pub type Arms = Vec<(Vec<Condition>, Action)>;

type Said = [(Vec<Condition>, Action)];

/// From which number on what is said.
type Piece<'a> = (u32, &'a Said);

/// The calls of an architecture, by number.
pub struct Architecture {
    /// As the kernel's audit names it.
    pub audit: u32,
    /// What is said of its calls.
    pub calls: BTreeMap<u32, Arms>,
    /// The last numbers that the profile knows of: what comes behind is newer than it, and is told as not there, so that
    /// programs fall back (as runc has it, where not everything is allowed that is not named).
    pub last: Vec<u32>,
}

/// A program for these architectures; a call of any other kills. `otherwise`: what becomes of a call of which nothing is said.
pub fn program(architectures: &[Architecture], otherwise: Action) -> Result<Vec<Instruction>, String> {
    let mut code = vec![(LOAD, 0, 0, ARCHITECTURE)];
    for architecture in architectures {
        let mut body = vec![(LOAD, 0, 0, NUMBER)];
        let pieces = pieces(architecture, otherwise);
        tree(&pieces, otherwise, &mut body)?;
        code.push((IF_EQUAL, 1, 0, architecture.audit));
        code.push((JUMP, 0, 0, body.len() as u32));
        code.extend(body);
    }
    code.push((RETURN, 0, 0, Action::KillProcess.code()));
    if code.len() > LONGEST {
        return Err(format!("the profile is too long: {} instructions, of {LONGEST} at most", code.len()));
    }
    Ok(code)
}

/// Numbers from one on of which the same is said, in order, from 0 on.
fn pieces(of: &Architecture, otherwise: Action) -> Vec<Piece<'_>> {
    const NOTHING: &Said = &[];
    const NOT_THERE: &Said = &[(Vec::new(), Action::Fail(libc::ENOSYS as u16))];
    let mut pieces: Vec<Piece<'_>> = vec![(0, NOTHING)];
    let mut say = |from: u32, arms| {
        match pieces.last_mut() {
            Some(last) if last.0 == from => last.1 = arms,
            Some(_) | None => pieces.push((from, arms)),
        };
    };
    for (number, arms) in &of.calls {
        say(*number, arms.as_slice());
        if let Some(next) = number.checked_add(1) {
            let is_newer = of.last.contains(number) && otherwise != Action::Allow;
            say(next, if is_newer { NOT_THERE } else { NOTHING });
        }
    }
    pieces.dedup_by(|b, a| verdict(a.1, otherwise).is_some_and(|same| verdict(b.1, otherwise) == Some(same)));
    pieces
}

/// What is said whatever the arguments are.
fn verdict(arms: &Said, otherwise: Action) -> Option<Action> {
    match arms.first() {
        None => Some(otherwise),
        Some((conditions, action)) if conditions.is_empty() => Some(*action),
        Some(_) => None,
    }
}

/// Finds the piece that the loaded number is in, and says what is said there.
fn tree(pieces: &[Piece<'_>], otherwise: Action, code: &mut Vec<Instruction>) -> Result<(), String> {
    if let [(_, arms)] = pieces {
        return leaf(arms, otherwise, code);
    }
    let (low, high) = pieces.split_at(pieces.len() / 2);
    let Some((from, _)) = high.first() else { return Ok(()) };
    let mut below = Vec::new();
    tree(low, otherwise, &mut below)?;
    match u8::try_from(below.len()) {
        Ok(over) => code.push((IF_AT_LEAST, over, 0, *from)),
        Err(_) => code.extend([(IF_AT_LEAST, 0, 1, *from), (JUMP, 0, 0, below.len() as u32)]),
    }
    code.extend(below);
    tree(high, otherwise, code)
}

fn leaf(arms: &Said, otherwise: Action, code: &mut Vec<Instruction>) -> Result<(), String> {
    for (conditions, action) in arms {
        let mut arm: Vec<Instruction> = Vec::new();
        // From the last condition on: each knows how far it is to the next arm then.
        arm.push((RETURN, 0, 0, action.code()));
        for (argument, compare) in conditions.iter().rev() {
            let beyond = u8::try_from(arm.len()).map_err(|_| "too many conditions on one call".to_owned())?;
            let mut whole = condition(*argument, *compare, beyond)?;
            whole.append(&mut arm);
            arm = whole;
        }
        code.append(&mut arm);
        if conditions.is_empty() {
            return Ok(());
        }
    }
    code.push((RETURN, 0, 0, otherwise.code()));
    Ok(())
}

/// Goes on behind itself if the condition holds, and `beyond` further if it doesn't.
fn condition(argument: u8, compare: Compare, beyond: u8) -> Result<Vec<Instruction>, String> {
    if argument > 5 {
        return Err(format!("there is no argument {argument}: calls have six, from 0"));
    }
    let at = ARGUMENTS + 8 * u32::from(argument);
    let (low, high) = ((LOAD, 0, 0, at), (LOAD, 0, 0, at + 4));
    let halves = |value: u64| ((value & 0xffff_ffff) as u32, (value >> 32) as u32);
    // So far it is to the next arm from an instruction with this many of the condition behind it.
    let fails =
        |behind: u8| beyond.checked_add(behind).ok_or_else(|| "too many conditions on one call".to_owned());
    Ok(match compare {
        Compare::Equal(value) => {
            let (l, h) = halves(value);
            vec![high, (IF_EQUAL, 0, fails(2)?, h), low, (IF_EQUAL, 0, fails(0)?, l)]
        }
        Compare::NotEqual(value) => {
            let (l, h) = halves(value);
            vec![high, (IF_EQUAL, 0, 2, h), low, (IF_EQUAL, fails(0)?, 0, l)]
        }
        Compare::Masked(mask, value) => {
            let ((ml, mh), (l, h)) = (halves(mask), halves(value));
            let (mask_high, mask_low) = ((AND, 0, 0, mh), (AND, 0, 0, ml));
            vec![high, mask_high, (IF_EQUAL, 0, fails(3)?, h), low, mask_low, (IF_EQUAL, 0, fails(0)?, l)]
        }
        Compare::More(value) | Compare::AtLeast(value) => {
            let (l, h) = halves(value);
            let last = if matches!(compare, Compare::More(_)) { IF_GREATER } else { IF_AT_LEAST };
            vec![high, (IF_GREATER, 3, 0, h), (IF_EQUAL, 0, fails(2)?, h), low, (last, 0, fails(0)?, l)]
        }
        Compare::Less(value) | Compare::AtMost(value) => {
            let (l, h) = halves(value);
            let last = if matches!(compare, Compare::AtMost(_)) { IF_GREATER } else { IF_AT_LEAST };
            vec![high, (IF_GREATER, fails(3)?, 0, h), (IF_EQUAL, 0, 2, h), low, (last, fails(0)?, 0, l)]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program says of a call: the kernel's own rules, for the few instructions that there are here.
    fn run(code: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut a) = (0, 0_u32);
        loop {
            let (operation, jt, jf, k) = code[at];
            at += 1;
            let holds = match operation {
                LOAD => {
                    a = match k {
                        NUMBER => number,
                        ARCHITECTURE => architecture,
                        _ => {
                            let value = arguments[((k - ARGUMENTS) / 8) as usize];
                            if (k - ARGUMENTS).is_multiple_of(8) {
                                value as u32
                            } else {
                                (value >> 32) as u32
                            }
                        }
                    };
                    continue;
                }
                AND => {
                    a &= k;
                    continue;
                }
                JUMP => {
                    at += k as usize;
                    continue;
                }
                RETURN => return k,
                IF_EQUAL => a == k,
                IF_GREATER => a > k,
                IF_AT_LEAST => a >= k,
                other => panic!("no such operation: {other}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[test]
    fn what_is_said_of_a_call_becomes_of_it() {
        let values = [0, 1, 7, 8, 9, 0xffff_ffff, 1 << 32, (1 << 32) + 8, (2 << 32) + 7, u64::MAX];
        let compares = |v| {
            [
                Compare::Equal(v),
                Compare::NotEqual(v),
                Compare::Less(v),
                Compare::AtMost(v),
                Compare::More(v),
                Compare::AtLeast(v),
                Compare::Masked(v, 8),
                Compare::Masked(!v, 0),
            ]
        };
        let holds = |compare, x: u64| match compare {
            Compare::Equal(v) => x == v,
            Compare::NotEqual(v) => x != v,
            Compare::Less(v) => x < v,
            Compare::AtMost(v) => x <= v,
            Compare::More(v) => x > v,
            Compare::AtLeast(v) => x >= v,
            Compare::Masked(mask, v) => x & mask == v,
        };
        for compare in values.into_iter().flat_map(compares) {
            // Two conditions, two arms, among many other calls.
            let mut calls: BTreeMap<u32, Arms> =
                (0..600).step_by(3).map(|n| (n, vec![(vec![], Action::Fail(n as u16))])).collect();
            let conditions = vec![(1, compare), (5, Compare::Equal(3))];
            calls.insert(301, vec![(conditions, Action::Log), (vec![(0, compare)], Action::Trap)]);
            let other = Architecture {
                audit: 2,
                calls: BTreeMap::from([(5, vec![(vec![], Action::Trap)])]),
                last: vec![5],
            };
            let first = Architecture { audit: 1, calls, last: vec![] };
            let code = program(&[first, other], Action::Allow).expect("fits");
            for x in values {
                for third in [3, 4] {
                    let wanted = match (holds(compare, x), third) {
                        (true, 3) => Action::Log,
                        (true, _) => Action::Trap,
                        (false, _) => Action::Allow,
                    };
                    let got = run(&code, 1, 301, [x, x, 0, 0, 0, third]);
                    assert_eq!(got, wanted.code(), "{compare:?} {x:#x} {third}");
                }
            }
            for number in [0, 1, 2, 3, 299, 300, 302, 303, 597, 598, 600, u32::MAX] {
                let wanted = match number {
                    n if n < 600 && n % 3 == 0 => Action::Fail(n as u16),
                    _ => Action::Allow,
                };
                assert_eq!(run(&code, 1, number, [0; 6]), wanted.code(), "{number}");
            }
            assert_eq!(run(&code, 2, 5, [0; 6]), Action::Trap.code());
            assert_eq!(run(&code, 2, 6, [0; 6]), Action::Allow.code());
            assert_eq!(run(&code, 3, 5, [0; 6]), Action::KillProcess.code());
        }
        assert!(program(&[], Action::Allow).is_ok());
        let no_argument = BTreeMap::from([(1, vec![(vec![(6, Compare::Equal(0))], Action::Allow)])]);
        let one = |calls| [Architecture { audit: 1, calls, last: vec![7] }];
        assert!(program(&one(no_argument), Action::Allow).is_err());
        let known = BTreeMap::from([(7, vec![(vec![], Action::Allow)])]);
        let code = program(&one(known), Action::Fail(1)).expect("fits");
        let says = |number| run(&code, 1, number, [0; 6]);
        assert_eq!(
            [6, 7, 8, u32::MAX].map(says),
            [Action::Fail(1), Action::Allow, Action::Fail(38), Action::Fail(38)].map(Action::code)
        );
    }
}
