//! What a running pod of two containers and three volumes weighs (DESIGN §9): bytes asked of the allocator.
#![allow(missing_docs, clippy::print_stdout, clippy::disallowed_methods)]

mod pods;

use std::alloc::System;

#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

fn main() {
    println!("{:>8}  {:>13}", "pods", "bytes per pod");
    for standing in [100, 10_000, 100_000] {
        let before = ALLOCATOR.allocated();
        let bench = pods::Bench::new(standing);
        let per_pod = (ALLOCATOR.allocated() - before) / standing as usize;
        println!("{standing:>8}  {per_pod:>13}");
        drop(bench);
    }
}
