//! Derived tool call ids: equal for equal intent, different for any difference, and telling nothing.

use proptest::prelude::*;
use tollgate_domain::{Arguments, Call, CallKey, Correlation, Digest, IdentityKey, InvocationId, OwnerKind, Received, Timestamp};

use crate::sample::call;

fn key(byte: u8) -> IdentityKey {
    IdentityKey::from_bytes(&[byte; 32]).unwrap()
}

fn id(call: &Call) -> String {
    key(1).tool_call(call).as_str().to_owned()
}

fn with(arguments: &str) -> String {
    id(&call(arguments))
}

#[test]
fn a_key_has_exactly_32_bytes() {
    assert!(IdentityKey::from_bytes(&[1; 32]).is_some());
    assert!(IdentityKey::from_bytes(&[1; 31]).is_none());
    assert!(IdentityKey::from_bytes(&[1; 33]).is_none());
    assert!(IdentityKey::from_bytes(&[]).is_none());
}

#[test]
fn b22_the_id_of_a_call_never_changes_between_versions() {
    // Recorded once: another value here means that no replay finds its call any more.
    insta::assert_snapshot!(with(r#"{"to":"ann","amount":12.50}"#), @"
    tc-a27131a6978d7c17bea66c1aacbf322c1a64bdc31126de33b62b4b91ce9dd559
    ");
}

#[test]
fn b22_equal_intent_has_an_equal_id() {
    let one = with(r#"{"a":1.5,"b":{"x":"é","y":[1,2]}}"#);
    assert_eq!(one, with(r#" { "b" : { "y" : [ 1 , 2 ] , "x" : "\u00e9" } , "a" : 15e-1 } "#));
    assert_eq!(one.len(), "tc-".len() + 64);
}

#[test]
fn b22_any_change_gives_another_id() {
    let base = call(r#"{"a":1}"#);
    let mut changed: Vec<Call> = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Call)| {
        let mut call = base.clone();
        edit(&mut call);
        changed.push(call);
    };
    change(&|_| {});
    change(&|call| call.run.tenant = "other".parse().unwrap());
    change(&|call| call.run.workspace = "other".parse().unwrap());
    change(&|call| call.run.owner_kind = OwnerKind::Flow);
    change(&|call| call.run.owner = "other".parse().unwrap());
    change(&|call| call.run.run = "other".parse().unwrap());
    change(&|call| call.agent.id = "other".parse().unwrap());
    change(&|call| call.agent.revision = "8".parse().unwrap());
    change(&|call| call.tool.id = "other".parse().unwrap());
    change(&|call| call.call_key = Some(CallKey::parse("0").unwrap()));
    change(&|call| call.call_key = Some(CallKey::parse("1").unwrap()));
    for arguments in [r#"{"a":2}"#, r#"{"a":"1"}"#, r#"{"A":1}"#, r#"{"a":[1]}"#, "{}", r#"{"a":1,"b":null}"#] {
        change(&|call| call.arguments = Arguments::parse(arguments.as_bytes()).unwrap());
    }
    let distinct: std::collections::HashSet<_> = changed.iter().map(id).collect();
    assert_eq!(distinct.len(), changed.len());
    assert_ne!(key(1).tool_call(&base), key(2).tool_call(&base));
}

#[test]
fn b22_what_is_no_part_of_the_intent_does_not_change_the_id() {
    let base = call("{}");
    let mut other = base.clone();
    other.invocation = Some("another-attempt".parse().unwrap());
    other.runtime.step_index = Some(9);
    other.runtime.traceparent = Some(Correlation::parse("00-1-2-01").unwrap());
    other.claims.groups = vec!["finance".parse().unwrap()];
    assert_eq!(id(&base), id(&other));
}

#[test]
fn b22_integers_that_a_double_cannot_tell_apart_have_different_ids() {
    assert_ne!(with(r#"{"account":9007199254740992}"#), with(r#"{"account":9007199254740993}"#));
}

#[test]
fn neighbouring_fields_cannot_be_shifted_into_each_other() {
    let shifted = |tenant: &str, workspace: &str| {
        let mut call = call("{}");
        call.run.tenant = tenant.parse().unwrap();
        call.run.workspace = workspace.parse().unwrap();
        id(&call)
    };
    assert_ne!(shifted("ab", "c"), shifted("a", "bc"));
    let parts = |parts: &[&[u8]]| Digest::of_parts(parts.iter().copied());
    assert_ne!(parts(&[b"ab", b"c"]), parts(&[b"a", b"bc"]));
    assert_ne!(parts(&[b"abc"]), parts(&[b"ab", b"c"]));
    assert_ne!(parts(&[b"", b"abc"]), parts(&[b"abc", b""]));
}

#[test]
fn key_id_and_check_value_tell_keys_apart_and_nothing_else() {
    let bytes: Vec<u8> = (100..132).collect();
    let key = IdentityKey::from_bytes(&bytes).unwrap();
    let (id, check) = (key.id(), key.check_value());
    assert_eq!(id.as_str().len(), 16);
    assert_ne!(id, self::key(1).id());
    assert_ne!(check, self::key(1).check_value());
    let in_hex = Digest::from_bytes(&bytes).unwrap().to_string();
    for told in [id.as_str().to_owned(), check.to_string(), format!("{key:?}")] {
        for window in in_hex.as_bytes().windows(8) {
            assert!(!told.contains(std::str::from_utf8(window).unwrap()), "{told} tells a part of the key");
        }
    }
    // Neither is a hash of the bare key, which anybody could check a guess against by the thousand.
    assert_ne!(check, Digest::of(&bytes));
    assert!(!check.to_string().starts_with(id.as_str()));
    assert_eq!(format!("{key:?}"), "IdentityKey([sensitive])");
}

#[test]
fn b21_an_id_of_the_callers_is_kept_and_only_a_derived_one_names_its_key() {
    let fresh = || InvocationId::parse("fresh").unwrap();
    let at = Timestamp::from_micros(1);
    let mut own = call("{}");
    own.tool_call = Some("own-call".parse().unwrap());
    own.invocation = Some("own-attempt".parse().unwrap());
    let own = Received::new(own, &key(1), fresh, false, at);
    assert_eq!((own.ids().tool_call.as_str(), own.ids().invocation.as_str()), ("own-call", "own-attempt"));
    assert_eq!(own.record().derived_with, None);
    let derived = Received::new(call("{}"), &key(1), fresh, false, at);
    assert_eq!(derived.ids().tool_call, key(1).tool_call(&call("{}")));
    assert_eq!(derived.ids().invocation.as_str(), "fresh");
    assert_eq!(derived.record().derived_with, Some(key(1).id()));
}

fn fingerprint(call: &Call) -> Digest {
    let fresh = || InvocationId::parse("fresh").unwrap();
    key(1).fingerprint(&Received::new(call.clone(), &key(1), fresh, false, Timestamp::from_micros(1)))
}

#[test]
fn b10_two_sendings_are_identical_only_if_every_field_is() {
    let base = call(r#"{"a":1}"#);
    let mut changed: Vec<Call> = vec![base.clone()];
    let mut change = |edit: &dyn Fn(&mut Call)| {
        let mut call = base.clone();
        edit(&mut call);
        changed.push(call);
    };
    change(&|call| call.agent.revision = "8".parse().unwrap());
    change(&|call| call.tool.provider = Some("mail".parse().unwrap()));
    change(&|call| call.arguments = Arguments::parse(br#"{"a":2}"#).unwrap());
    change(&|call| call.call_key = Some(CallKey::parse("1").unwrap()));
    change(&|call| call.runtime.depth = 1);
    change(&|call| call.tool_call = Some("own".parse().unwrap()));
    change(&|call| call.claims.groups = vec!["finance".parse().unwrap()]);
    change(&|call| call.claims.attributes = Some(Arguments::parse(b"{}").unwrap()));
    change(&|call| call.claims.attributes = Some(Arguments::parse(br#"{"x":1}"#).unwrap()));
    let distinct: std::collections::HashSet<_> = changed.iter().map(fingerprint).collect();
    assert_eq!(distinct.len(), changed.len());
    // A retry travels under a span of its own.
    let mut retried = base.clone();
    retried.runtime.traceparent = Some(Correlation::parse("00-1-2-01").unwrap());
    assert_eq!(fingerprint(&base), fingerprint(&retried));
}

proptest! {
    #[test]
    fn b22_ids_are_equal_exactly_where_the_parts_are(
        one in proptest::array::uniform4("[ab]{1,2}"),
        other in proptest::array::uniform4("[ab]{1,2}"),
    ) {
        let derive = |[tenant, owner, tool, value]: &[String; 4]| {
            let mut call = call(&format!("{{\"v\":\"{value}\"}}"));
            call.run.tenant = tenant.parse().unwrap();
            call.run.owner = owner.parse().unwrap();
            call.tool.id = tool.parse().unwrap();
            id(&call)
        };
        prop_assert_eq!(derive(&one) == derive(&other), one == other);
    }

    #[test]
    fn b22_the_order_of_members_never_matters(members in proptest::collection::btree_map("[a-zé€😀]{0,3}", any::<i64>(), 0..6)) {
        let write = |members: Vec<(&String, &i64)>| {
            let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            with(&format!("{{{}}}", members.join(",")))
        };
        prop_assert_eq!(write(members.iter().collect()), write(members.iter().rev().collect()));
    }
}
