//! Small file systems that can be filled up and made read-only.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A mounted tmpfs, gone when dropped.
#[derive(Debug)]
pub struct Tmpfs {
    at: PathBuf,
}

impl Tmpfs {
    /// Mounts one. Where this user may not mount, the test cannot be made: a failure on the build server,
    /// and elsewhere a loud word.
    #[must_use]
    pub fn mount(at: &Path, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = format!("size={megabytes}m,mode=0700");
        if let Err(problem) = mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], at) {
            assert!(env::var_os("CI").is_none(), "this test needs the right to mount a tmpfs: {problem}");
            eprintln!("NOT TESTED: no tmpfs can be mounted here: {problem}");
            return None;
        }
        Some(Self { at: at.to_owned() })
    }

    /// Makes it read-only, or writable again. Nobody may have a file of it open for writing.
    pub fn set_read_only(&self, read_only: bool) {
        let option = if read_only { "remount,ro" } else { "remount,rw" };
        mount(&["-o", option], &self.at).unwrap();
    }

    /// Takes up all the space that is left, and gives it back when dropped.
    #[must_use]
    pub fn fill(&self) -> Filling {
        let path = self.at.join("filling");
        let mut file = fs::File::create(&path).unwrap();
        let block = vec![0_u8; 4_096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        Filling { path }
    }
}

/// What takes up the space of a [`Tmpfs`].
#[derive(Debug)]
pub struct Filling {
    path: PathBuf,
}

impl Drop for Filling {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.at).output());
    }
}

fn mount(arguments: &[&str], at: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(at).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}
