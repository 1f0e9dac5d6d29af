//! A value that lives on a thread of its own, where it may wait for the disk without holding up anybody else.

use std::{io, sync::mpsc, thread};

use tokio::sync::oneshot;

type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// The way to the value. The thread ends, and drops it, once this is dropped.
#[derive(Debug)]
pub(super) struct Thread<T> {
    jobs: mpsc::Sender<Job<T>>,
}

/// The thread ended before it answered: a job panicked.
#[derive(Debug)]
pub(super) struct Ended;

impl<T: Send + 'static> Thread<T> {
    pub(super) fn start(name: &str, mut value: T) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job<T>>();
        let work = move || queue.into_iter().for_each(|job| job(&mut value));
        thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { jobs })
    }

    /// Does something to the value. One wake of the thread, and one of the caller.
    pub(super) async fn run<R: Send + 'static>(&self, job: impl FnOnce(&mut T) -> R + Send + 'static) -> Result<R, Ended> {
        let (answer, answered) = oneshot::channel();
        // Whoever gave up waiting is not told.
        self.jobs.send(Box::new(move |value| drop(answer.send(job(value))))).map_err(|_| Ended)?;
        answered.await.map_err(|_| Ended)
    }
}
