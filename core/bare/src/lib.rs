//! A program without std around the core: its own panic handler and allocator. Were std linked anywhere below, the
//! handler would be defined twice and the build would fail.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use nodefold_core::{Commands, Config, Event, Fact, Node};

struct Nothing;

// SAFETY: it hands out nothing at all.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Nothing = Nothing;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Folds one tick, so that the whole reducer is linked.
#[unsafe(no_mangle)]
pub extern "C" fn nodefold_tick(at: u64) -> u64 {
    let mut node = Node::new(Config::default());
    node.apply(&Event { at: nodefold_core::time::Time(at), fact: Fact::Tick }, &mut Commands::default());
    node.digest().0 as u64
}
