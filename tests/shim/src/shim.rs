//! What is known of the process that the shim is loaded into: the files that are watched, and the control words.

use std::{
    collections::HashMap,
    env,
    ffi::{CStr, CString, c_int},
    sync::{
        OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use crate::{
    control::{self, file},
    rules::{self, Verdict},
    system,
    undo::Undo,
};

/// A watched file, or the watched directory.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// Within the directory; that of the directory is empty.
    pub(crate) name: String,
    kind: u64,
}

#[derive(Debug)]
pub(crate) struct Shim {
    directory: String,
    words: &'static [AtomicU64],
    undo: Option<Undo>,
    open: RwLock<HashMap<c_int, Watched>>,
}

/// The shim, where the environment asks for one.
pub(crate) fn shim() -> Option<&'static Shim> {
    static SHIM: OnceLock<Option<Shim>> = OnceLock::new();
    SHIM.get_or_init(Shim::new).as_ref()
}

impl Shim {
    fn new() -> Option<Self> {
        let text = |name| env::var_os(name)?.into_string().ok();
        let (directory, side) = (text(control::WATCHED)?, text(control::SIDE)?);
        let path = CString::new(format!("{side}/{}", control::CONTROL_FILE)).ok()?;
        let fd = system::open(libc::AT_FDCWD, &path, libc::O_RDWR | libc::O_CLOEXEC, 0).ok()?;
        let words = system::map(c_int::try_from(fd).ok()?, control::WORDS)?;
        let keeps = words.get(control::KEEP_UNDO)?.load(SeqCst) != 0;
        let undo = if keeps { Undo::new(&side, words.get(control::UNDO_NUMBER)?) } else { None };
        Some(Self { directory, words, undo, open: RwLock::default() })
    }

    /// What the wall clock is wrong by, in nanoseconds.
    pub(crate) fn clock(&self) -> i64 {
        self.words.get(control::CLOCK).map_or(0, |word| word.load(SeqCst).cast_signed())
    }

    pub(crate) fn undo(&self, watched: &Watched) -> Option<&Undo> {
        self.undo.as_ref().filter(|_| watched.name != control::INDEX)
    }

    pub(crate) fn ask(&self, operation: u64, watched: &Watched) -> Verdict {
        rules::ask(self.words, operation, watched.kind)
    }

    /// What a path names, where it is watched.
    pub(crate) fn at(&self, path: &CStr) -> Option<Watched> {
        let rest = path.to_str().ok()?.strip_prefix(&self.directory)?;
        let name = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
        if name.contains('/') {
            return None;
        }
        let kind = match name {
            "" => file::DIRECTORY,
            control::DATABASE => file::DATABASE,
            control::LOG => file::LOG,
            _ => file::OTHER,
        };
        Some(Watched { name: name.to_owned(), kind })
    }

    pub(crate) fn watched(&self, fd: c_int) -> Option<Watched> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(&fd).cloned()
    }

    pub(crate) fn opened(&self, fd: c_int, watched: Watched) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(fd, watched);
    }

    /// Before the descriptor can be another file's.
    pub(crate) fn closing(&self, fd: c_int) {
        if self.watched(fd).is_some() {
            self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&fd);
        }
    }
}
