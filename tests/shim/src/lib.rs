//! A bad disk and a wrong clock for a program that knows nothing of them: loaded before the C library
//! (`LD_PRELOAD`), it stands in for the calls that reach files, and does to them what the tests ask for.
//!
//! It needs `unsafe`, which the rest of the workspace forbids: the functions of C are called by their names and take
//! raw pointers. Nothing of it is part of the product, and no package depends on it; the tests build it and name it to
//! the loader.
#![cfg(target_os = "linux")]

mod calls;
mod control;
mod rules;
mod shim;
mod system;
mod undo;
