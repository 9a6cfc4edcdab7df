//! A served node as its users meet it: a stock `kubectl`, clients that mean no good, restarts, load. All against
//! `nodefold agent --backend sim`, in a process of its own, without root.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(clippy::print_stdout, reason = "a load test tells its figures")]
#![allow(clippy::disallowed_methods, reason = "it waits for a process of its own, no longer than so long")]

#[path = "served/abuse.rs"]
mod abuse;
#[path = "served/client.rs"]
mod client;
#[path = "served/history.rs"]
mod history;
#[path = "served/kubectl.rs"]
mod kubectl;
#[path = "served/lists.rs"]
mod lists;
#[path = "served/load.rs"]
mod load;
#[path = "served/node.rs"]
mod node;
#[path = "served/restart.rs"]
mod restart;
#[path = "served/static_pods.rs"]
mod static_pods;
#[path = "served/webhooks.rs"]
mod webhooks;
