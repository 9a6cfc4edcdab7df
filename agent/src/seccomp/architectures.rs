//! Whose calls this machine takes: its own and, where it has them, those of its 32-bit forebear. Numbers by name.

#[cfg(target_arch = "x86_64")]
use super::program::Compare;
use super::program::{Architecture, Arms};
use std::collections::BTreeMap;
use std::str::FromStr;
use syscalls::Sysno;

/// What is said of calls, by name.
pub type Names<'a> = BTreeMap<&'a str, Arms>;

/// This machine's own.
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
/// Its forebear's.
#[cfg(target_arch = "x86_64")]
const FOREBEAR: u32 = 0x4000_0003;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "aarch64")]
const FOREBEAR: u32 = 0x4000_0028;

/// The forebear as profiles call it.
#[cfg(target_arch = "x86_64")]
pub const FOREBEAR_NAME: &str = "SCMP_ARCH_X86";
#[cfg(target_arch = "aarch64")]
pub const FOREBEAR_NAME: &str = "SCMP_ARCH_ARM";

/// The bit of x32's numbers, what it has no call for, and those that are its own.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const NOT_IN_X32: [&str; 4] = ["set_thread_area", "get_thread_area", "epoll_ctl_old", "epoll_wait_old"];
#[cfg(target_arch = "x86_64")]
const OWN_TO_X32: [(&str, u32); 36] = [
    ("rt_sigaction", 512),
    ("rt_sigreturn", 513),
    ("ioctl", 514),
    ("readv", 515),
    ("writev", 516),
    ("recvfrom", 517),
    ("sendmsg", 518),
    ("recvmsg", 519),
    ("execve", 520),
    ("ptrace", 521),
    ("rt_sigpending", 522),
    ("rt_sigtimedwait", 523),
    ("rt_sigqueueinfo", 524),
    ("sigaltstack", 525),
    ("timer_create", 526),
    ("mq_notify", 527),
    ("kexec_load", 528),
    ("waitid", 529),
    ("set_robust_list", 530),
    ("get_robust_list", 531),
    ("vmsplice", 532),
    ("move_pages", 533),
    ("preadv", 534),
    ("pwritev", 535),
    ("rt_tgsigqueueinfo", 536),
    ("recvmmsg", 537),
    ("sendmmsg", 538),
    ("process_vm_readv", 539),
    ("process_vm_writev", 540),
    ("setsockopt", 541),
    ("getsockopt", 542),
    ("io_setup", 543),
    ("io_submit", 544),
    ("execveat", 545),
    ("preadv2", 546),
    ("pwritev2", 547),
];

/// What is said of each call, for this machine's own architecture and, if asked for, its forebear. Of names that one has no
/// call for nothing is said there, as runtimes have it. x32's numbers are the machine's own by other names: of them the same
/// is said always, so that nobody gets past a profile by them.
pub fn all(names: &Names<'_>, with_forebear: bool) -> Vec<Architecture> {
    let by = |number: fn(&str) -> Option<u32>| -> BTreeMap<u32, Arms> {
        names.iter().filter_map(|(name, arms)| Some((number(name)?, arms.clone()))).collect()
    };
    let last_of = |calls: &BTreeMap<u32, Arms>| calls.last_key_value().map(|(number, _)| *number);
    let mut native = by(|name| Sysno::from_str(name).ok().map(|call| call.id().cast_unsigned()));
    let mut last: Vec<u32> = last_of(&native).into_iter().collect();
    #[cfg(target_arch = "x86_64")]
    {
        native.extend(by(x32).into_iter().map(|(number, arms)| (number, half_as_wide(arms))));
        last.extend(last_of(&native));
    }
    let mut all = vec![Architecture { audit: NATIVE, calls: native, last }];
    if with_forebear {
        let calls = by(|name| Forebear::from_str(name).ok().map(|call| call.id().cast_unsigned()));
        let last = last_of(&calls).into_iter().collect();
        all.push(Architecture { audit: FOREBEAR, calls, last });
    }
    all
}

#[cfg(target_arch = "x86_64")]
use syscalls::x86::Sysno as Forebear;

#[cfg(target_arch = "aarch64")]
use syscalls::arm::Sysno as Forebear;

/// Of x32's arguments the low half counts.
#[cfg(target_arch = "x86_64")]
fn half_as_wide(mut arms: Arms) -> Arms {
    for (_, compare) in arms.iter_mut().flat_map(|(conditions, _)| conditions) {
        if let Compare::Equal(value) = *compare {
            *compare = Compare::Masked(u64::from(u32::MAX), value);
        }
    }
    arms
}

#[cfg(target_arch = "x86_64")]
fn x32(name: &str) -> Option<u32> {
    let own = OWN_TO_X32.iter().find(|(of, _)| *of == name).map(|(_, number)| *number);
    if NOT_IN_X32.contains(&name) {
        return None;
    }
    let shared = || Sysno::from_str(name).ok().map(|call| call.id().cast_unsigned());
    own.or_else(shared).map(|number| number | X32)
}
