//! A thread for one future that waits for the disk, and by that holds up nobody else.

use std::{io, thread};

/// Runs a future, with time, on a thread of its own, which ends with it.
pub(crate) fn run(name: &str, future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(future))?;
    Ok(())
}
