//! The functions of C that the program calls, under their own names.
//!
//! `open` and its kin take their last argument only sometimes. It is read always: where it was not given there is
//! something else in its register, and the kernel ignores it.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    slice,
};

use libc::{AT_FDCWD, EIO, clockid_t, mode_t, off64_t, size_t, ssize_t, timespec};

use crate::{
    control::operation,
    rules::Verdict,
    shim::{Shim, Watched, shim},
    system::{self, Answer},
};

fn open_file(directory: c_int, path: &CStr, flags: c_int, mode: mode_t) -> Answer {
    let plain = || system::open(directory, path, flags, mode);
    let Some((shim, watched)) = shim().and_then(|shim| Some((shim, shim.at(path)?))) else { return plain() };
    let verdict = shim.ask(operation::OPEN, &watched);
    if let Verdict::Fail(error) = verdict {
        return Err(error);
    }
    if let Some(undo) = shim.undo(&watched)
        && flags & libc::O_CREAT != 0
        && !system::exists(path)
    {
        undo.creating(&watched.name);
    }
    let fd = plain()?;
    if matches!(verdict, Verdict::KillWithin) {
        system::kill();
    }
    shim.opened(c_int::try_from(fd).unwrap_or(-1), watched);
    Ok(fd)
}

/// A write to a watched file, at a place or where the last one ended.
fn write_file(shim: &Shim, watched: &Watched, fd: c_int, bytes: &[u8], offset: Option<off64_t>) -> Answer {
    let verdict = shim.ask(operation::WRITE, watched);
    let bytes = match verdict {
        Verdict::Fail(error) => return Err(error),
        Verdict::Short | Verdict::KillWithin => bytes.get(..bytes.len().div_ceil(2)).unwrap_or(bytes),
        Verdict::Pass | Verdict::Lie => bytes,
    };
    if let Some(undo) = shim.undo(watched) {
        let appends = system::flags(fd).is_ok_and(|flags| flags & i64::from(libc::O_APPEND) != 0);
        let place = offset.or_else(|| if appends { None } else { system::position(fd).ok() });
        undo.writing(&watched.name, fd, place.unwrap_or_else(|| system::size(fd)), bytes.len());
    }
    let written = match offset {
        Some(offset) => system::pwrite(fd, bytes, offset),
        None => system::write(fd, bytes),
    };
    if matches!(verdict, Verdict::KillWithin) {
        system::kill();
    }
    written
}

fn sync_file(fd: c_int) -> Answer {
    let plain = || system::sync(fd);
    let Some((shim, watched)) = shim().and_then(|shim| Some((shim, shim.watched(fd)?))) else { return plain() };
    let reach = shim.undo(&watched).map(|undo| (undo, undo.reach()));
    match shim.ask(operation::SYNC, &watched) {
        Verdict::Fail(error) => {
            if let Some((undo, reach)) = reach {
                undo.lost(&watched.name, reach);
            }
            Err(error)
        }
        Verdict::Lie => Ok(0),
        Verdict::KillWithin => {
            let _ = plain();
            system::kill()
        }
        Verdict::Pass | Verdict::Short => {
            let synced = plain()?;
            if let Some((undo, reach)) = reach {
                undo.synced(&watched.name, reach);
            }
            Ok(synced)
        }
    }
}

fn truncate_file(fd: c_int, size: off64_t) -> Answer {
    let plain = || system::truncate(fd, size);
    let Some((shim, watched)) = shim().and_then(|shim| Some((shim, shim.watched(fd)?))) else { return plain() };
    let verdict = shim.ask(operation::TRUNCATE, &watched);
    if let Verdict::Fail(error) = verdict {
        return Err(error);
    }
    if let Some(undo) = shim.undo(&watched) {
        undo.truncating(&watched.name, fd, size);
    }
    finished(&verdict, plain())
}

/// Takes a name away, or gives it to another file.
fn name_file(path: &CStr, also: Option<&CStr>, plain: impl FnOnce() -> Answer) -> Answer {
    let Some((shim, watched)) = shim().and_then(|shim| Some((shim, shim.at(path)?))) else { return plain() };
    let verdict = shim.ask(operation::NAME, &watched);
    if let Verdict::Fail(error) = verdict {
        return Err(error);
    }
    if let Some(undo) = shim.undo(&watched) {
        undo.removing(&watched.name, path);
        if let Some((other, path)) = also.and_then(|path| Some((shim.at(path)?, path))) {
            undo.removing(&other.name, path);
            undo.creating(&other.name);
        }
    }
    finished(&verdict, plain())
}

/// Gives a file another name.
fn link_file(path: &CStr, plain: impl FnOnce() -> Answer) -> Answer {
    let Some((shim, watched)) = shim().and_then(|shim| Some((shim, shim.at(path)?))) else { return plain() };
    let verdict = shim.ask(operation::NAME, &watched);
    if let Verdict::Fail(error) = verdict {
        return Err(error);
    }
    if let Some(undo) = shim.undo(&watched)
        && !system::exists(path)
    {
        undo.creating(&watched.name);
    }
    finished(&verdict, plain())
}

fn finished(verdict: &Verdict, answer: Answer) -> Answer {
    if matches!(verdict, Verdict::KillWithin) {
        system::kill();
    }
    answer
}

/// The bytes that a caller gives.
///
/// # Safety
///
/// There must be so many; where there are none the address may be anything.
unsafe fn given<'a>(bytes: *const c_void, count: size_t) -> &'a [u8] {
    // SAFETY: by what is asked of the caller.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(bytes.cast(), count) } }
}

/// As C answers: -1, and the number apart.
fn answered<T: TryFrom<i64> + From<i8>>(answer: Answer) -> T {
    let answer = answer.and_then(|value| T::try_from(value).map_err(|_| EIO));
    answer.unwrap_or_else(|error| {
        system::set_error_number(error);
        T::from(-1)
    })
}

/// Defines `open` and its kin.
macro_rules! open {
    ($($name:ident ( $($directory:ident)? );)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($directory: c_int,)? path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller gives a text as C has them.
            let path = unsafe { CStr::from_ptr(path) };
            let directory = [AT_FDCWD $(, $directory)?];
            answered(open_file(directory[directory.len() - 1], path, flags, mode))
        }
    )*};
}

open! {
    open();
    open64();
    openat(directory);
    openat64(directory);
}

#[unsafe(no_mangle)]
extern "C" fn close(fd: c_int) -> c_int {
    if let Some(shim) = shim() {
        shim.closing(fd);
    }
    answered(system::close(fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller gives so many bytes to read from.
    let bytes = unsafe { given(bytes, count) };
    let watched = shim().and_then(|shim| Some((shim, shim.watched(fd)?)));
    answered(match watched {
        None => system::write(fd, bytes),
        Some((shim, watched)) => write_file(shim, &watched, fd, bytes, None),
    })
}

macro_rules! pwrite {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, bytes: *const c_void, count: size_t, offset: off64_t) -> ssize_t {
            // SAFETY: the caller gives so many bytes to read from.
            let bytes = unsafe { given(bytes, count) };
            let watched = shim().and_then(|shim| Some((shim, shim.watched(fd)?)));
            answered(match watched {
                None => system::pwrite(fd, bytes, offset),
                Some((shim, watched)) => write_file(shim, &watched, fd, bytes, Some(offset)),
            })
        }
    )*};
}

pwrite! { pwrite pwrite64 }

macro_rules! pread {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, bytes: *mut c_void, count: size_t, offset: off64_t) -> ssize_t {
            // SAFETY: the caller gives room for so many bytes; where there are none the address may be anything.
            let bytes = if count == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(bytes.cast(), count) } };
            let watched = shim().and_then(|shim| Some(shim.ask(operation::READ, &shim.watched(fd)?)));
            answered(match watched {
                Some(Verdict::Fail(error)) => Err(error),
                _ => system::pread(fd, bytes, offset),
            })
        }
    )*};
}

pread! { pread pread64 }

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    answered(sync_file(fd))
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    answered(sync_file(fd))
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(fd: c_int, size: off64_t) -> c_int {
    answered(truncate_file(fd, size))
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(fd: c_int, size: off64_t) -> c_int {
    answered(truncate_file(fd, size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller gives a text as C has them.
    let path = unsafe { CStr::from_ptr(path) };
    answered(name_file(path, None, || system::unlink(AT_FDCWD, path, 0)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller gives texts as C has them.
    let (from, to) = unsafe { (CStr::from_ptr(from), CStr::from_ptr(to)) };
    answered(name_file(from, Some(to), || system::rename(from, to)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn linkat(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller gives texts as C has them.
    let (from, to) = unsafe { (CStr::from_ptr(from), CStr::from_ptr(to)) };
    answered(link_file(to, || system::link(from_directory, from, to_directory, to, flags)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller gives room for a time.
    let Some(time) = (unsafe { time.as_mut() }) else { return answered(Err(libc::EFAULT)) };
    let answer = system::clock(id, time);
    if id == libc::CLOCK_REALTIME
        && let Some(shim) = shim()
    {
        let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec + shim.clock();
        (time.tv_sec, time.tv_nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    }
    answered(answer)
}
