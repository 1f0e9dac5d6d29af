//! The calls themselves, straight to the kernel: the functions of C of the same names are our own here.

use std::{
    ffi::{CStr, c_int, c_long},
    ptr, slice,
    sync::atomic::AtomicU64,
};

use libc::{mode_t, off64_t, timespec};

/// What a call answers: a value, or an error number.
pub(crate) type Answer = Result<i64, c_int>;

/// Makes a system call; the error number is left where C looks for it, too.
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        // SAFETY: each caller below passes what the kernel's call of that number takes, and the kernel checks addresses.
        let value: c_long = unsafe { libc::syscall($number $(, $argument)*) };
        if value < 0 { Err(error_number()) } else { Ok(value) }
    }};
}

pub(crate) fn open(directory: c_int, path: &CStr, flags: c_int, mode: mode_t) -> Answer {
    call!(libc::SYS_openat, directory, path.as_ptr(), flags, mode)
}

pub(crate) fn close(fd: c_int) -> Answer {
    call!(libc::SYS_close, fd)
}

pub(crate) fn write(fd: c_int, bytes: &[u8]) -> Answer {
    call!(libc::SYS_write, fd, bytes.as_ptr(), bytes.len())
}

pub(crate) fn pwrite(fd: c_int, bytes: &[u8], offset: off64_t) -> Answer {
    call!(libc::SYS_pwrite64, fd, bytes.as_ptr(), bytes.len(), offset)
}

pub(crate) fn pread(fd: c_int, bytes: &mut [u8], offset: off64_t) -> Answer {
    call!(libc::SYS_pread64, fd, bytes.as_mut_ptr(), bytes.len(), offset)
}

/// Where the next `write` goes.
pub(crate) fn position(fd: c_int) -> Answer {
    call!(libc::SYS_lseek, fd, 0_i64, libc::SEEK_CUR)
}

pub(crate) fn flags(fd: c_int) -> Answer {
    call!(libc::SYS_fcntl, fd, libc::F_GETFL)
}

pub(crate) fn sync(fd: c_int) -> Answer {
    call!(libc::SYS_fsync, fd)
}

pub(crate) fn truncate(fd: c_int, size: off64_t) -> Answer {
    call!(libc::SYS_ftruncate, fd, size)
}

pub(crate) fn unlink(directory: c_int, path: &CStr, flags: c_int) -> Answer {
    call!(libc::SYS_unlinkat, directory, path.as_ptr(), flags)
}

pub(crate) fn rename(from: &CStr, to: &CStr) -> Answer {
    call!(libc::SYS_renameat2, libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), 0)
}

pub(crate) fn link(from_directory: c_int, from: &CStr, to_directory: c_int, to: &CStr, flags: c_int) -> Answer {
    call!(libc::SYS_linkat, from_directory, from.as_ptr(), to_directory, to.as_ptr(), flags)
}

pub(crate) fn exists(path: &CStr) -> bool {
    call!(libc::SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::F_OK).is_ok()
}

/// The size of an open file. `lseek` would tell it, and move the place of the next `write`.
pub(crate) fn size(fd: c_int) -> i64 {
    status(fd).st_size
}

/// Which file is open.
pub(crate) fn identity(fd: c_int) -> (u64, u64) {
    let status = status(fd);
    (status.st_dev, status.st_ino)
}

fn status(fd: c_int) -> libc::stat64 {
    // SAFETY: all zeros is a value of this plain structure.
    let mut status: libc::stat64 = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is ours, and lives through the call, which fills it or leaves it.
    unsafe { libc::fstat64(fd, &raw mut status) };
    status
}

pub(crate) fn clock(id: libc::clockid_t, time: &mut timespec) -> Answer {
    call!(libc::SYS_clock_gettime, id, ptr::from_mut(time))
}

pub(crate) fn pause(millis: i64) {
    let time = timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 };
    let _ = call!(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<timespec>());
}

/// Maps a file of so many words, shared with whoever writes to it.
pub(crate) fn map(fd: c_int, words: usize) -> Option<&'static [AtomicU64]> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of a file that is open; nothing else is at the address that the kernel chooses.
    let start = unsafe { libc::mmap(ptr::null_mut(), words * size_of::<AtomicU64>(), access, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is as long, is aligned to a page, is never taken away, and every value is a word.
    Some(unsafe { slice::from_raw_parts(start.cast(), words) })
}

/// Ends this process as nothing can catch.
pub(crate) fn kill() -> ! {
    loop {
        let _ = call!(libc::SYS_kill, std::process::id(), libc::SIGKILL);
    }
}

fn error_number() -> c_int {
    // SAFETY: the address is this thread's own, and always there.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_error_number(number: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number }
}
