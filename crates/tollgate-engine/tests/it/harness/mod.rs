//! A world for an engine to live in: its time, its journal, its hooks, and a log of what they see.

mod answer;
mod call;
mod fake_hook;
mod faulty_store;
mod log;
mod show;
mod world;

pub(crate) use answer::{allowed, assert_allowed, refused};
pub(crate) use call::{call, run};
pub(crate) use fake_hook::{Does, FakeHook, hook};
pub(crate) use faulty_store::{Fault, FaultyStore};
pub(crate) use log::Log;
pub(crate) use world::{Sent, World, bundle, options};
