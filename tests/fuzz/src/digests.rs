//! The digest chain and the derived ids: a byte that moves from one field to its neighbour makes another digest.

use tollgate_domain::{Arguments, Digest, IdentityKey, InvocationKey, chain_digest};

use crate::call;

/// Checks that digests tell apart what these bytes, cut in two different ways, say: two lists of cuts, then the
/// bytes to cut.
pub fn check(data: &[u8]) {
    let Some((cuts, rest)) = data.split_at_checked(16) else { return };
    let (one, other) = cuts.split_at(8);
    let numbers = |cuts: &[u8]| (u64::from(cuts[6]), u32::from(cuts[7]));
    let text = String::from_utf8_lossy(rest);
    let (fields, others) = (cut(&text, one), cut(&text, other));

    let parts = |fields: &[String]| Digest::of_parts(fields.iter().map(String::as_bytes));
    assert_eq!(parts(&fields) == parts(&others), fields == others, "parts");

    if let (Some(a), Some(b)) = (chained(numbers(one), &fields), chained(numbers(other), &others)) {
        let same = fields[..4] == others[..4] && numbers(one) == numbers(other);
        assert_eq!(a == b, same, "the chain");
    }
    if let (Some(a), Some(b)) = (derived(&fields), derived(&others)) {
        assert_eq!(a == b, fields == others, "derived ids");
    }
}

/// Six fields that together are the text, up to its last.
fn cut(text: &str, cuts: &[u8]) -> Vec<String> {
    let mut rest = text;
    let mut fields = Vec::new();
    for len in &cuts[..5] {
        let (field, after) = rest.split_at(rest.floor_char_boundary(usize::from(*len).min(rest.len())));
        fields.push(field.to_owned());
        rest = after;
    }
    fields.push(rest.to_owned());
    fields
}

fn chained((sequence, attempt): (u64, u32), fields: &[String]) -> Option<Digest> {
    let key =
        InvocationKey { tool_call: fields[0].parse().ok()?, invocation: fields[1].parse().ok()?, tool: fields[2].parse().ok()? };
    Some(chain_digest(&Digest::of(b"genesis"), sequence, attempt, Some(&key), fields[3].as_bytes()))
}

fn derived(fields: &[String]) -> Option<String> {
    let mut call = call::of(fields[0].parse().ok()?, Arguments::parse(b"{}").ok()?);
    call.run.tenant = fields[1].parse().ok()?;
    call.run.workspace = fields[2].parse().ok()?;
    call.run.owner = fields[3].parse().ok()?;
    call.run.run = fields[4].parse().ok()?;
    call.call_key = if fields[5].is_empty() { None } else { Some(fields[5].parse().ok()?) };
    Some(IdentityKey::from_bytes(&[7; 32])?.tool_call(&call).to_string())
}
