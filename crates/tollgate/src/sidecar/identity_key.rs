//! The identity key's file: 32 random bytes as hexadecimal text, readable by its owner alone.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, Result, bail};
use tollgate_domain::IdentityKey;

use crate::world;

/// Most bytes of the file that are read.
const FILE_MAX_BYTES: u64 = 1_024;
/// Permission bits of the group and of others.
const NOT_OWNER: u32 = 0o077;

/// Reads the key; makes one at the first start of a journal.
pub(crate) fn load_or_create(path: &Path, journal: &Path) -> Result<IdentityKey> {
    match read_bounded(path) {
        Ok(text) => read(path, &text),
        Err(error) if error.kind() == ErrorKind::NotFound && journal.exists() => bail!(
            "the identity key {} is missing, and the journal {} was begun with it: restore the key from where it was backed up, \
             or begin a new journal",
            path.display(),
            journal.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => create(path),
        Err(error) => Err(error).with_context(|| format!("cannot read the identity key {}", path.display())),
    }
}

/// A key is short; whatever else stands there is not read to its end.
fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn read(path: &Path, text: &str) -> Result<IdentityKey> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & NOT_OWNER != 0 {
        tracing::warn!(path = %path.display(), mode = format!("{:04o}", mode & 0o777), "others may read the identity key: chmod 600 it");
    }
    hex::decode(text.trim()).ok().and_then(|bytes| IdentityKey::from_bytes(&bytes)).with_context(|| {
        format!(
            "the identity key {} is damaged: it must hold 64 hexadecimal digits; restore it from where it was backed up",
            path.display()
        )
    })
}

fn create(path: &Path) -> Result<IdentityKey> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.with_context(|| format!("cannot make the directory {}", parent.display()))?;
    }
    let key = world::random_key().context("the machine gives no randomness for the identity key")?;
    let text = hex::encode(key);
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{text}")?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write the identity key {}", path.display()))?;
    match IdentityKey::from_bytes(&key) {
        Some(key) => Ok(key),
        None => bail!("a fresh identity key is no key"),
    }
}
