//! The disk's own floor: one thread that writes over a file and waits until that is durable.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use crate::load::Log;

/// About the size of the facts of one decision.
const RECORD_BYTES: usize = 2_048;
/// Written once before it is measured: to write over what is there needs no change of the file system's own records.
const FILE_BYTES: usize = 16 * 1_048_576;

/// A file to write over.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn new(directory: &Path) -> Self {
        let path = directory.join("floor");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![0; FILE_BYTES]).unwrap();
        file.sync_all().unwrap();
        Self(path)
    }

    /// Writes one record after the other, each with fdatasync.
    pub(crate) async fn write(&self, log: &Log, until: Instant) {
        let mut file = File::options().write(true).open(&self.0).unwrap();
        let record = [7; RECORD_BYTES];
        let mut written = 0;
        while Instant::now() < until {
            let begun = Instant::now();
            file.write_all(&record).unwrap();
            file.sync_data().unwrap();
            log.answered(begun);
            written += RECORD_BYTES;
            if written == FILE_BYTES {
                file.seek(SeekFrom::Start(0)).unwrap();
                written = 0;
            }
            tokio::task::yield_now().await;
        }
    }
}
