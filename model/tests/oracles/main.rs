//! Each oracle passes traces of a node that behaves and catches the historical races that broke its invariant
//! (`kubelet-pods` §6: B numbers; `kubelet-volumes` §5: race numbers), alone, with the records that prove it.

mod allocation;
mod containers;
mod operations;
mod pods;
mod quiet;
mod statuses;
mod story;
mod volumes;

/// Records of `Story::up`.
const APPLIED: usize = 0;
const MOUNT: usize = 1;
const MOUNTED: usize = 2;
const SANDBOX: usize = 3;
const CREATE: usize = 5;
const STARTED: usize = 8;
