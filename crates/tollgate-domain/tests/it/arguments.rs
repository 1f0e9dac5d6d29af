//! Arguments: one I-JSON object that every parser reads alike, or nothing.

use proptest::prelude::*;
use tollgate_domain::{Arguments, InvalidArguments, InvalidJson, Json, limits};

fn parse(bytes: impl AsRef<[u8]>) -> Result<Arguments, InvalidArguments> {
    Arguments::parse(bytes.as_ref())
}

fn refused(bytes: impl AsRef<[u8]>) -> InvalidArguments {
    parse(bytes).unwrap_err()
}

const MALFORMED: InvalidArguments = InvalidArguments::Json(InvalidJson::Malformed);
const DUPLICATE: InvalidArguments = InvalidArguments::Json(InvalidJson::DuplicateName);

#[test]
fn an_object_is_kept_as_it_was_written() {
    let arguments = parse(r#" {"b":[1,2.50,-0,1e2],"a":{"x":null,"y":true},"s":"\u00e9\n"} "#).unwrap();
    let number = |text: &str| Json::Number(text.into());
    let expected = Json::Object(vec![
        ("b".into(), Json::Array(vec![number("1"), number("2.50"), number("-0"), number("1e2")])),
        ("a".into(), Json::Object(vec![("x".into(), Json::Null), ("y".into(), Json::Bool(true))])),
        ("s".into(), Json::String("é\n".into())),
    ]);
    assert!(*arguments.value() == expected);
    assert_eq!(arguments.byte_len(), 62);
}

#[test]
fn a_name_twice_is_refused_at_any_depth_and_in_any_spelling() {
    for twice in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"x":{"a":1,"a":2}}"#,
        r#"{"x":[[{"a":1,"a":2}]]}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u00e9":1,"é":2}"#,
        r#"{"\ud83d\ude00":1,"😀":2}"#,
        r#"{"":1,"":2}"#,
        r#"{"/":1,"\/":2}"#,
    ] {
        assert_eq!(refused(twice), DUPLICATE, "{twice}");
    }
    // Equal names in different objects, and names that merely look alike, are fine.
    assert!(parse(r#"{"a":{"a":1},"b":{"a":2}}"#).is_ok());
    assert!(parse(r#"{"a":1,"A":2,"é":3,"e\u0301":4}"#).is_ok());
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    for malformed in [
        "",
        " ",
        "{",
        "}",
        r#"{"a":1}}"#,
        r#"{"a":1} {"a":1}"#,
        r#"{"a":1}x"#,
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r"{a:1}",
        r"{'a':1}",
        r#"{"a":01}"#,
        r#"{"a":+1}"#,
        r#"{"a":.5}"#,
        r#"{"a":1.}"#,
        r#"{"a":0x10}"#,
        r#"{"a":NaN}"#,
        r#"{"a":Infinity}"#,
        r#"{"a":-Infinity}"#,
        r#"{"a":undefined}"#,
        r#"{"a":True}"#,
        r#"{"a":1 /* why */}"#,
        "{\"a\":\"line\nbreak\"}",
        "{\"a\":\"\0\"}",
        r#"{"a":"\x41"}"#,
        r#"{"a":"\u12"}"#,
        "\u{feff}{}",
        "{}\u{feff}",
        "\u{a0}{}",
    ] {
        assert_eq!(refused(malformed), MALFORMED, "{malformed:?}");
    }
}

#[test]
fn invalid_utf8_is_refused() {
    for bytes in [
        &b"{\"a\":\"\xff\"}"[..],
        b"{\"a\":\"\xc3\"}",
        b"{\"a\":\"\xc0\xaf\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":\"\xf4\x90\x80\x80\"}",
        b"{\"\xff\":1}",
        b"{}\xff",
        b"\xff\xfe{\0}\0",
    ] {
        assert_eq!(refused(bytes), MALFORMED, "{bytes:?}");
    }
}

#[test]
fn a_lone_surrogate_is_refused_in_values_and_names() {
    for lone in [
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800x"}"#,
        r#"{"a":"\ud800\ud800"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        r#"{"a":"\udc00\ud800"}"#,
        r#"{"\ud800":1}"#,
    ] {
        assert_eq!(refused(lone), MALFORMED, "{lone}");
    }
    assert!(parse(r#"{"a":"\ud83d\ude00"}"#).is_ok());
}

#[test]
fn numbers_are_exact_texts_within_the_range_of_doubles() {
    for huge in ["1e999", "-1e999", "1e309", "1.8e308"] {
        assert_eq!(refused(format!("{{\"a\":{huge}}}")), InvalidArguments::Json(InvalidJson::NumberRange), "{huge}");
    }
    for fine in ["1.7976931348623157e308", "9007199254740993", "-0", "5e-324", "123456789012345678901234567890"] {
        let arguments = parse(format!("{{\"a\":{fine}}}")).unwrap();
        assert!(*arguments.value() == Json::Object(vec![("a".into(), Json::Number(fine.into()))]), "{fine}");
    }
}

#[test]
fn arguments_are_one_object() {
    for other in ["[]", "null", "true", "1", r#""{}""#, r#"[{"a":1}]"#] {
        assert_eq!(refused(other), InvalidArguments::NotAnObject, "{other}");
    }
    assert!(parse("{}").is_ok());
}

#[test]
fn arguments_nest_64_levels_and_not_65() {
    let nested = |levels: usize| {
        let inner = levels - 1;
        format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner))
    };
    assert!(parse(nested(limits::ARGUMENTS_MAX_DEPTH)).is_ok());
    assert_eq!(refused(nested(65)), InvalidArguments::Json(InvalidJson::TooDeep));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(parse(objects(64)).is_ok());
    assert_eq!(refused(objects(65)), InvalidArguments::Json(InvalidJson::TooDeep));
    // The depth is refused before the end is looked at.
    assert_eq!(refused("{\"a\":".repeat(100_000)), InvalidArguments::Json(InvalidJson::TooDeep));
}

#[test]
fn arguments_have_one_mebibyte_and_not_a_byte_more() {
    let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    assert_eq!(parse(sized(1_048_576)).unwrap().byte_len(), limits::ARGUMENTS_MAX_BYTES);
    assert_eq!(refused(sized(1_048_577)), InvalidArguments::TooLong(1_048_577));
}

proptest! {
    #[test]
    fn no_bytes_whatever_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(parse(&bytes));
    }

    /// Near-JSON reaches deeper into the parser than noise does.
    #[test]
    fn no_mutilated_object_is_read_as_something_else(cut in 0_usize..60, byte in any::<u8>()) {
        let mut bytes = br#"{"amount":12.50,"to":["ann","b\u00e9a"],"deep":{"x":[null,true]}}"#.to_vec();
        let last = bytes.len() - 1;
        bytes[cut.min(last)] = byte;
        // Whatever is accepted is what serde_json reads, too.
        if parse(&bytes).is_ok() {
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        }
    }
}

#[test]
fn p11_as_many_values_as_the_limit_are_taken_and_one_more_is_refused() {
    // The object and the array are values too.
    let with = |values: usize| format!("{{\"a\":[{}]}}", vec!["1"; values - 2].join(","));
    assert!(parse(with(limits::ARGUMENTS_MAX_VALUES)).is_ok());
    assert_eq!(refused(with(limits::ARGUMENTS_MAX_VALUES + 1)), InvalidArguments::Json(InvalidJson::TooMany));
}
