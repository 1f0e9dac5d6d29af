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

/// Makes a key. It is written whole under another name and then given its own, which never takes the place of a
/// key that somebody else made meanwhile; and all of it is durable before any journal is begun with it. So a first
/// start that is cut off leaves a key or none.
fn create(path: &Path) -> Result<IdentityKey> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_directory(parent).with_context(|| format!("cannot make the directory {}", parent.display()))?;
    let key = world::random_key().context("the machine gives no randomness for the identity key")?;
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        writeln!(file, "{}", hex::encode(key))?;
        file.sync_all()?;
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
        fs::remove_file(&draft)?;
        fs::File::open(parent)?.sync_all()
    };
    write().with_context(|| format!("cannot write the identity key {}", path.display()))?;
    let text = read_bounded(path).with_context(|| format!("cannot read the identity key {}", path.display()))?;
    read(path, &text)
}

/// Makes a directory, for its owner alone, and each new name durable.
fn make_directory(directory: &Path) -> io::Result<()> {
    let missing: Vec<_> = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut holders = missing.into_iter().map(|made| made.parent().filter(|parent| !parent.as_os_str().is_empty()));
    holders.try_for_each(|holder| fs::File::open(holder.unwrap_or(Path::new(".")))?.sync_all())
}
