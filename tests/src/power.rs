//! A power cut: what a sidecar wrote and never synced is put back as it was, wholly or here and there.
//!
//! The shim under the sidecar notes what stood where it writes ([`crate::faults`]). A sector that was written to
//! since its last sync may hold, after a power cut, what any of these writes left there; a file may have any of the sizes
//! that it had; and of the names that were made or taken away any number of the last may be undone.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    ops::Range,
    path::Path,
};

use crate::{
    faults::{
        Faults,
        control::{self, undo},
    },
    soak,
};

/// What a disk writes whole.
const SECTOR: usize = 512;

/// What gets lost of what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// All of it.
    Everything,
    /// What a seed says.
    Some(u64),
}

/// Cuts the power, once the sidecar has ended. Tells how many writes were not durable, so that they were put back or could
/// have been.
pub fn cut(faults: &mut Faults, loss: Loss) -> usize {
    let log = faults.side().join(control::UNDO_FILE);
    let Files { writes, names } = Files::read(&fs::read(&log).unwrap());
    let mut dice = Dice(match loss {
        Loss::Everything => None,
        Loss::Some(seed) => Some(seed),
    });
    let mut undone = 0;
    for (name, writes) in &writes {
        undone += writes.iter().filter(|write| !write.durable).count();
        if writes.iter().any(|write| !write.durable) {
            put_back(&faults.watched().join(name), writes, &mut dice);
        }
    }
    let kept = dice.between(0, names.len());
    for change in names[kept..].iter().rev() {
        let path = faults.watched().join(&change.name);
        if change.made {
            drop(fs::remove_file(path));
        } else {
            fs::rename(faults.side().join(format!("kept-{}", change.number)), path).unwrap();
        }
    }
    // Mapped memory: what reached the disk of it is anything.
    let index = faults.watched().join(control::INDEX);
    if index.exists() {
        fs::write(index, vec![0xa5; 32_768]).unwrap();
    }
    fs::write(log, "").unwrap();
    soak::report(&[("power cuts", 1), ("writes that a power cut met", undone)]);
    undone
}

/// A write, or a change of size.
struct Write {
    number: u64,
    offset: usize,
    /// Sizes of the file.
    before: usize,
    after: usize,
    /// What stood there.
    data: Vec<u8>,
    durable: bool,
    /// A sync of it failed, so that no later one can make it durable.
    lost: bool,
}

impl Write {
    fn touched(&self) -> Range<usize> {
        let end = (self.offset + self.data.len()).max(if self.after == self.before { 0 } else { self.after.max(self.before) });
        self.offset..end.max(self.offset)
    }

    fn sectors(&self) -> Range<usize> {
        let touched = self.touched();
        touched.start / SECTOR..touched.end.div_ceil(SECTOR)
    }
}

/// A name that was made or taken away.
struct Change {
    number: u64,
    name: String,
    made: bool,
}

/// What is not durable.
#[derive(Default)]
struct Files {
    /// Of each file, what was written since it was last durable as a whole, in order.
    writes: BTreeMap<String, Vec<Write>>,
    names: Vec<Change>,
}

impl Files {
    fn read(mut log: &[u8]) -> Self {
        let mut files = Self::default();
        // A last record that is not whole was cut off before what it undoes was done.
        while let Some(head) = log.first_chunk::<{ undo::WORDS * 8 }>() {
            let word = |index: usize| u64::from_ne_bytes(head[index * 8..index * 8 + 8].try_into().unwrap());
            let [name, data] = [word(2), word(3)].map(|length| usize::try_from(length).unwrap());
            let body = &log[head.len()..];
            if body.len() < name + data {
                break;
            }
            let text = String::from_utf8(body[..name].to_vec()).unwrap();
            files.take(word(0), word(1), text, [word(4), word(5), word(6)], &body[name..name + data]);
            log = &body[name + data..];
        }
        files
    }

    fn take(&mut self, kind: u64, number: u64, name: String, words: [u64; 3], data: &[u8]) {
        let [first, before, after] = words.map(|word| usize::try_from(word).unwrap());
        match kind {
            undo::WRITE | undo::TRUNCATE => {
                let write = Write { number, offset: first, before, after, data: data.to_vec(), durable: false, lost: false };
                self.writes.entry(name).or_default().push(write);
            }
            undo::CREATE | undo::REMOVE => {
                // Another file from here on; the one before is kept as it is.
                self.writes.remove(&name);
                self.names.push(Change { number, name, made: kind == undo::CREATE });
            }
            undo::SYNC if name.is_empty() => self.names.retain(|change| change.number > words[0]),
            undo::SYNC => {
                let Some(writes) = self.writes.get_mut(&name) else { return };
                for write in writes.iter_mut().filter(|write| write.number <= words[0] && !write.lost) {
                    write.durable = true;
                }
                if writes.iter().all(|write| write.durable) {
                    writes.clear();
                }
            }
            undo::LOST => {
                for write in self.writes.entry(name).or_default() {
                    write.lost |= write.number <= words[0] && !write.durable;
                }
            }
            other => panic!("the undo log holds a record of kind {other}"),
        }
    }
}

fn put_back(path: &Path, writes: &[Write], dice: &mut Dice) {
    let Ok(mut content) = fs::read(path) else { return };
    // State 0 is that before the first write, state n that after the n-th. A durable write bars all before it.
    let mut oldest: HashMap<usize, usize> = HashMap::new();
    for (state, write) in (1..).zip(writes) {
        if write.durable {
            oldest.extend(write.sectors().map(|sector| (sector, state)));
        }
    }
    let oldest_size = (1..).zip(writes).filter(|(_, write)| write.durable).map(|(state, _)| state).max().unwrap_or(0);
    let size_state = dice.between(oldest_size, writes.len());
    let size = if size_state == 0 { writes[0].before } else { writes[size_state - 1].after };
    let mut chosen: HashMap<usize, usize> = HashMap::new();
    let longest = writes.iter().map(|write| write.before.max(write.after)).max().unwrap_or(0).max(content.len());
    content.resize(longest, 0);
    for (state, write) in writes.iter().enumerate().map(|(before, write)| (before + 1, write)).rev() {
        for sector in write.sectors() {
            let oldest = oldest.get(&sector).copied().unwrap_or(0);
            let chosen = *chosen.entry(sector).or_insert_with(|| dice.between(oldest, writes.len()));
            if chosen >= state {
                continue;
            }
            let (touched, start) = (write.touched(), sector * SECTOR);
            let part = touched.start.max(start)..touched.end.min(start + SECTOR);
            let before = write.data.get(part.start - write.offset..).unwrap_or(&[]);
            let known = before.len().min(part.len());
            content[part.start..part.start + known].copy_from_slice(&before[..known]);
            content[part.start + known..part.end].fill(0);
        }
    }
    content.resize(size, 0);
    fs::write(path, content).unwrap();
}

/// Numbers from a seed (splitmix64); without one always the lowest, which loses most.
#[derive(Debug)]
pub struct Dice(pub Option<u64>);

impl Dice {
    /// A number of a range, both ends included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        let Some(seed) = &mut self.0 else { return low };
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + usize::try_from((mixed ^ (mixed >> 31)) % (high - low + 1) as u64).unwrap()
    }
}
