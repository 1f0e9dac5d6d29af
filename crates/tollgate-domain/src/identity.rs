//! The derived id of a tool call, for frameworks that have none.
//!
//! A keyed MAC, never a plain hash: arguments of low entropy could be guessed from a hash that
//! stands in the journal. The key lives outside the store, which holds its id and a check value.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{
    call::Call,
    digest::Digest,
    ids::{CallKey, ToolCallId},
    sensitive::Sensitive,
    stage::Received,
};

/// Length of the identity key, in bytes.
const KEY_BYTES: usize = 32;
/// Block size of SHA-256, to which HMAC (RFC 2104) pads a shorter key with zeros.
const BLOCK_BYTES: usize = 64;

/// Names an [`IdentityKey`] without revealing it: 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The key that derived ids are made with; shared by the sidecars of one journal.
#[derive(Clone, Debug)]
pub struct IdentityKey(Sensitive<[u8; BLOCK_BYTES]>);

impl IdentityKey {
    /// A key from exactly 32 bytes of good randomness.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key: [u8; KEY_BYTES] = bytes.try_into().ok()?;
        let mut block = [0; BLOCK_BYTES];
        block.iter_mut().zip(key).for_each(|(to, from)| *to = from);
        Some(Self(Sensitive::new(block)))
    }

    /// The key's id, for the record.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let mac = self.mac([b"tollgate key id v1".as_slice()]);
        KeyId(hex::encode(mac.as_bytes().get(..8).unwrap_or_default()))
    }

    /// A value by which a store recognises the key, without being able to derive anything from it.
    #[must_use]
    pub fn check_value(&self) -> Digest {
        self.mac([b"tollgate key check v1".as_slice()])
    }

    /// The id of a call whose framework gave none: equal for equal intent, and different for any
    /// difference in run, agent, revision, tool, call key or arguments.
    #[must_use]
    pub fn tool_call(&self, call: &Call) -> ToolCallId {
        let canonical = call.arguments.canonical();
        let run = &call.run;
        let mac = self.mac([
            b"tollgate tool call v1".as_slice(),
            run.tenant.as_str().as_bytes(),
            run.workspace.as_str().as_bytes(),
            run.owner_kind.as_str().as_bytes(),
            run.owner.as_str().as_bytes(),
            run.run.as_str().as_bytes(),
            call.agent.id.as_str().as_bytes(),
            call.agent.revision.as_str().as_bytes(),
            call.tool.id.as_str().as_bytes(),
            call.call_key.as_ref().map_or(b"".as_slice(), |key| key.as_str().as_bytes()),
            canonical.as_bytes(),
        ]);
        ToolCallId::derived(&format!("tc-{mac}"))
    }

    /// What two sendings of one invocation must share to count as identical. Kept in memory only.
    #[must_use]
    pub fn fingerprint(&self, received: &Received) -> Digest {
        let call = received.call();
        // A retry may travel under a span of its own, and is the same call.
        let mut record = received.record().clone();
        record.runtime.traceparent = None;
        // The record holds every field but the values below; encoding it cannot fail, and were it
        // to, the fingerprints of different calls could only be equal if all the values were.
        let fields = serde_json::to_vec(&record).unwrap_or_default();
        let attributes = call.claims.attributes.as_ref().map(crate::arguments::Arguments::canonical).unwrap_or_default();
        // A derived tool call id is a MAC over the arguments already.
        let arguments = if record.derived_with.is_some() { String::new() } else { call.arguments.canonical() };
        let call_key = call.call_key.as_ref().map_or("", CallKey::as_str);
        self.mac([
            b"tollgate fingerprint v1".as_slice(),
            received.ids().tool_call.as_str().as_bytes(),
            &fields,
            call_key.as_bytes(),
            attributes.as_bytes(),
            arguments.as_bytes(),
        ])
    }

    fn mac<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut mac = Hmac::<Sha256>::new(&(*self.0.expose()).into());
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        Digest::from_array(bytes)
    }
}
