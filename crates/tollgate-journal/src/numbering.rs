//! How generations and their hooks are numbered, once for every store.

use std::collections::HashMap;

use tollgate_domain::{Digest, GenerationNumbers, NumberRequest, ResourceId};

/// What a store knows of a bundle's generations.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    /// The highest number that was given.
    pub(crate) highest: u64,
    /// The highest number of the very content that is asked about.
    pub(crate) same: Option<GenerationNumbers>,
    /// Every hook that any generation had.
    pub(crate) hooks: HashMap<ResourceId, LastHook>,
}

/// A hook in the last generation that had it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastHook {
    /// That generation's number.
    pub(crate) number: u64,
    /// The hook's own.
    pub(crate) generation: u64,
    /// The digest of its content.
    pub(crate) digest: Digest,
}

/// What a store has to do.
#[derive(Debug)]
pub(crate) enum Numbering {
    /// Nothing: the numbers were given before.
    Given(GenerationNumbers),
    /// Keep these.
    New(GenerationNumbers),
}

impl Numbered {
    /// Numbers a generation.
    ///
    /// The same revision with the same digest is given its number again, unless the sidecar already ran
    /// a higher one: then the content has returned to what it was, and numbers never fall. A hook keeps
    /// its number only while its content equals that in the generation before.
    pub(crate) fn number(self, request: &NumberRequest) -> Numbering {
        let last = request.last.unwrap_or(0);
        match self.same {
            Some(same) if same.number >= last => Numbering::Given(same),
            _ => {
                let hooks = request.hooks.iter().map(|(resource, digest)| {
                    let generation = match self.hooks.get(resource) {
                        None => 1,
                        Some(before) if before.number == self.highest && before.digest == *digest => before.generation,
                        Some(before) => before.generation + 1,
                    };
                    (resource.clone(), generation)
                });
                Numbering::New(GenerationNumbers { number: self.highest.max(last) + 1, hooks: hooks.collect() })
            }
        }
    }
}
