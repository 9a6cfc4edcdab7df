//! Which devices a container may open and make, on a host without the devices controller of version 1: a program that the
//! kernel asks at each open and mknod of a process in the group (BPF_PROG_TYPE_CGROUP_DEVICE). It allows what every container
//! has, and to make nodes of any device; as runc's default does.

use crate::fault::{Attempt, Fault};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};

/// An instruction of the kernel's virtual machine.
type Instruction = u64;

/// The context's fields: access and kind in one word, then the numbers.
const ACCESS_AND_KIND: i16 = 0;
const MAJOR: i16 = 4;
const MINOR: i16 = 8;
/// Kind and access as the context has them.
const CHARACTER: i32 = 2;
const MAKE_NODE: i32 = 1;

/// Character devices that may be used however one likes: number, and number within it if not all.
const DEVICES: [(i32, Option<i32>); 8] = [
    (1, Some(3)),
    (1, Some(5)),
    (1, Some(7)),
    (1, Some(8)),
    (1, Some(9)),
    (5, Some(0)),
    (5, Some(2)),
    (136, None),
];

/// Registers: what is returned, the context, and what is taken out of it.
const RESULT: u8 = 0;
const CONTEXT: u8 = 1;
const KIND: u8 = 2;
const ACCESS: u8 = 3;
const DEVICE: u8 = 4;
const WITHIN: u8 = 5;
const SCRATCH: u8 = 6;

fn instruction(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> Instruction {
    u64::from(code)
        | u64::from(to | from << 4) << 8
        | u64::from(offset.cast_unsigned()) << 16
        | u64::from(constant.cast_unsigned()) << 32
}

fn load(to: u8, offset: i16) -> Instruction {
    instruction(0x61, to, CONTEXT, offset, 0)
}

fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

fn and(to: u8, mask: i32) -> Instruction {
    instruction(0x57, to, 0, 0, mask)
}

fn shift_right(to: u8, bits: i32) -> Instruction {
    instruction(0x77, to, 0, 0, bits)
}

/// Jumps over so many if the register is not this.
fn unless(register: u8, value: i32, over: i16) -> Instruction {
    instruction(0x55, register, 0, over, value)
}

fn unless_same(one: u8, other: u8, over: i16) -> Instruction {
    instruction(0x5d, one, other, over, 0)
}

fn answer(allowed: i32) -> [Instruction; 2] {
    [instruction(0xb7, RESULT, 0, 0, allowed), instruction(0x95, 0, 0, 0, 0)]
}

fn program() -> Vec<Instruction> {
    let mut program = vec![
        load(KIND, ACCESS_AND_KIND),
        copy(ACCESS, KIND),
        shift_right(ACCESS, 16),
        and(KIND, 0xffff),
        load(DEVICE, MAJOR),
        load(WITHIN, MINOR),
        // Nothing but to make a node.
        copy(SCRATCH, ACCESS),
        and(SCRATCH, MAKE_NODE),
        unless_same(SCRATCH, ACCESS, 2),
    ];
    program.extend(answer(1));
    // All others are character devices.
    let mut rules = Vec::new();
    for (device, within) in DEVICES {
        match within {
            Some(within) => rules.extend([unless(DEVICE, device, 3), unless(WITHIN, within, 2)]),
            None => rules.push(unless(DEVICE, device, 2)),
        }
        rules.extend(answer(1));
    }
    program.push(unless(KIND, CHARACTER, rules.len() as i16));
    program.extend(rules);
    program.extend(answer(0));
    program
}

/// The program in the kernel; it goes with its last descriptor and group.
pub fn loaded() -> Result<OwnedFd, Fault> {
    sys::load_device_program(&program())
        .attempt(|| "load the program that keeps containers from devices (bpf)")
}

/// Holds a group's processes, and those below it, to the rules.
pub fn hold_to(group: impl AsFd) -> Result<(), Fault> {
    sys::attach_device_program(group, loaded()?).attempt(|| "keep a control group from devices (bpf)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const NODE: u32 = 1;

    /// What the program answers, by the few instructions that it has.
    fn asked(kind: u32, access: u32, major: u32, minor: u32) -> u64 {
        let (context, program) = ([access << 16 | kind, major, minor], program());
        let (mut registers, mut at) = ([0_u64; 8], 0);
        loop {
            let one = program[at];
            let (to, from) = ((one >> 8 & 15) as usize, (one >> 12 & 15) as usize);
            let (offset, constant) = ((one >> 16) as u16 as usize, one >> 32);
            at += 1;
            match one & 0xff {
                0x61 => registers[to] = u64::from(context[offset / 4]),
                0xbf => registers[to] = registers[from],
                0x57 => registers[to] &= constant,
                0x77 => registers[to] >>= constant,
                0xb7 => registers[to] = constant,
                0x55 if registers[to] != constant => at += offset,
                0x5d if registers[to] != registers[from] => at += offset,
                0x55 | 0x5d => {}
                0x95 => return registers[0],
                other => panic!("no such instruction: {other:#x}"),
            }
        }
    }

    #[test]
    fn a_container_uses_its_own_devices_and_no_other() {
        let character = CHARACTER as u32;
        for (major, minor) in [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2), (136, 0), (136, 77)] {
            for access in [READ, WRITE, READ | WRITE, NODE, READ | WRITE | NODE] {
                assert_eq!(asked(character, access, major, minor), 1, "{major}:{minor}");
                assert_eq!(asked(BLOCK, access, major, minor), u64::from(access == NODE), "{major}:{minor}");
            }
        }
        for (major, minor) in [(1, 1), (1, 2), (1, 11), (5, 1), (10, 229), (254, 0), (137, 0)] {
            assert_eq!(asked(character, READ, major, minor), 0, "{major}:{minor}");
            assert_eq!(asked(character, NODE | READ, major, minor), 0, "{major}:{minor}");
            assert_eq!(asked(character, NODE, major, minor), 1, "{major}:{minor}");
        }
    }
}
