//! The undo log: what must be put back to have the files as a power cut could leave them.
//!
//! A record is written before what it undoes is done, so that a sudden death leaves no gap. With everything durable
//! the log is emptied.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, c_int},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use crate::{
    control::{UNDO_FILE, undo},
    system,
};

/// The log of this process.
#[derive(Debug)]
pub(crate) struct Undo {
    state: Mutex<State>,
    side: String,
}

#[derive(Debug)]
struct State {
    log: c_int,
    number: &'static AtomicU64,
    /// Of each name, and of the directory under the empty one, the numbers of its last record and of the last
    /// that is durable.
    last: HashMap<String, (u64, u64)>,
    /// Of files that are open for writing only, another descriptor to read with. Never closed: with any
    /// descriptor of a file go the locks that the process has on it.
    readers: HashMap<(u64, u64), c_int>,
}

impl Undo {
    pub(crate) fn new(side: &str, number: &'static AtomicU64) -> Option<Self> {
        let path = CString::new(format!("{side}/{UNDO_FILE}")).ok()?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        let log = c_int::try_from(system::open(libc::AT_FDCWD, &path, flags, 0o600).ok()?).ok()?;
        let mut state = State { log, number, last: HashMap::new(), readers: HashMap::new() };
        if system::size(log) > 0 {
            state.keep();
        }
        Some(Self { state: Mutex::new(state), side: side.to_owned() })
    }

    /// Before so many bytes are written at a place.
    pub(crate) fn writing(&self, name: &str, fd: c_int, offset: i64, count: usize) {
        let before = system::size(fd);
        let end = offset + i64::try_from(count).unwrap_or(0);
        self.with(|state| {
            let data = state.read(fd, offset, end.min(before));
            state.record(undo::WRITE, name, [word(offset), word(before), word(end.max(before))], &data);
        });
    }

    /// Before a file is given a size.
    pub(crate) fn truncating(&self, name: &str, fd: c_int, size: i64) {
        let before = system::size(fd);
        self.with(|state| {
            let data = state.read(fd, size, before);
            state.record(undo::TRUNCATE, name, [word(size), word(before), word(size)], &data);
        });
    }

    pub(crate) fn creating(&self, name: &str) {
        self.with(|state| state.record(undo::CREATE, name, [0; 3], &[]));
    }

    /// Before a name is taken away from its file: the file is kept under another.
    pub(crate) fn removing(&self, name: &str, path: &CStr) {
        self.with(|state| {
            let Ok(kept) = CString::new(format!("{}/kept-{}", self.side, state.next())) else { return };
            if system::link(libc::AT_FDCWD, path, libc::AT_FDCWD, &kept, 0).is_ok() {
                state.record(undo::REMOVE, name, [0; 3], &[]);
            }
        });
    }

    /// Up to where a sync that begins now will reach.
    pub(crate) fn reach(&self) -> u64 {
        let mut reach = 0;
        self.with(|state| reach = state.next() - 1);
        reach
    }

    pub(crate) fn synced(&self, name: &str, reach: u64) {
        self.with(|state| {
            state.record(undo::SYNC, name, [reach, 0, 0], &[]);
            let durable = state.last.entry(name.to_owned()).or_default();
            durable.1 = durable.1.max(reach);
            if state.last.values().all(|(last, durable)| last <= durable) {
                let _ = system::truncate(state.log, 0);
            }
        });
    }

    pub(crate) fn lost(&self, name: &str, reach: u64) {
        self.with(|state| {
            state.record(undo::LOST, name, [reach, 0, 0], &[]);
            state.keep();
        });
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    /// Never empties the log from here on: something in it will not become durable, or an earlier process did not
    /// say what is.
    fn keep(&mut self) {
        self.last.insert("kept".to_owned(), (u64::MAX, 0));
    }

    fn next(&self) -> u64 {
        self.number.load(SeqCst) + 1
    }

    fn record(&mut self, kind: u64, name: &str, words: [u64; 3], data: &[u8]) {
        let number = self.next();
        self.number.store(number, SeqCst);
        if matches!(kind, undo::WRITE | undo::TRUNCATE) {
            self.last.entry(name.to_owned()).or_default().0 = number;
        } else if matches!(kind, undo::CREATE | undo::REMOVE) {
            self.last.entry(String::new()).or_default().0 = number;
        }
        let head: [u64; undo::WORDS] = [kind, number, name.len() as u64, data.len() as u64, words[0], words[1], words[2]];
        let mut bytes = Vec::with_capacity(size_of_val(&head) + name.len() + data.len());
        bytes.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(data);
        // Whole, or the program would go on without what a test of it rests on.
        if system::write(self.log, &bytes) != Ok(i64::try_from(bytes.len()).unwrap_or(-1)) {
            system::kill();
        }
    }

    fn read(&mut self, fd: c_int, from: i64, to: i64) -> Vec<u8> {
        let mut data = vec![0; usize::try_from(to - from).unwrap_or(0)];
        if !data.is_empty() {
            let reader = self.reader(fd);
            let read = system::pread(reader, &mut data, from).unwrap_or(0);
            data.truncate(usize::try_from(read).unwrap_or(0));
        }
        data
    }

    fn reader(&mut self, fd: c_int) -> c_int {
        if system::flags(fd).is_ok_and(|flags| flags & i64::from(libc::O_ACCMODE) != i64::from(libc::O_WRONLY)) {
            return fd;
        }
        let readers = &mut self.readers;
        let identity = system::identity(fd);
        *readers.entry(identity).or_insert_with(|| {
            let path = CString::new(format!("/proc/self/fd/{fd}")).unwrap_or_default();
            let reader = system::open(libc::AT_FDCWD, &path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
            reader.ok().and_then(|reader| c_int::try_from(reader).ok()).unwrap_or(fd)
        })
    }
}

fn word(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
