//! How arguments become Cedar values: both sides of every edge, as a hook's verdict shows them.

use crate::harness::{call, say, typed};

const FITS: &str = "allowed";
const DOES_NOT: &str = "failed argument_unrepresentable";
const ANY: &str = "@id(\"any\") permit (principal, action, resource);";

/// What a value of each declared type comes to.
#[test]
fn semantics_6_arguments_fit_their_declared_type_or_the_hook_fails() {
    #[rustfmt::skip]
    let table: &[(&str, &[&str], &[&str])] = &[
        ("Bool", &["true", "false"], &["null", "0", "\"true\"", "[]", "{}"]),
        ("Long",
            &["0", "-0", "5", "5.0", "1e3", "-1.5e1", "9223372036854775807", "-9223372036854775808", "922337203685477580.7e1"],
            &["null", "0.5", "1e-1", "9223372036854775808", "-9223372036854775809", "1e19", "\"5\"", "true", "[5]"]),
        ("decimal",
            &["0", "1.5", "10", "0.0001", "1e-4", "1.50000", "922337203685477.5807", "-922337203685477.5808"],
            &["null", "0.00001", "1e-5", "922337203685477.5808", "-922337203685477.5809", "\"1.5\""]),
        ("String", &["\"\"", "\"a\"", r#""\u0000\"};""#], &["null", "1", "[\"a\"]"]),
        ("datetime",
            &["\"2026-03-01\"", "\"2026-03-01T12:00:00Z\"", "\"2026-03-01T12:00:00.123+0100\""],
            &["\"2026-02-30\"", "\"tomorrow\"", "\"\"", "1772366400", "null"]),
        ("duration", &["\"1h30m\"", "\"-5ms\""], &["\"1 hour\"", "\"\"", "5"]),
        ("ipaddr", &["\"10.0.0.1\"", "\"10.0.0.0/8\"", "\"::1\""], &["\"10.0.0.256\"", "\"host\"", "\"\"", "1", "null"]),
        ("Set<Long>", &["[]", "[1]", "[1, 1.0, 1]"], &["[null]", "[1, \"2\"]", "{}", "1", "null"]),
        ("Set<Set<String>>", &["[[]]", "[[\"a\"], []]"], &["[\"a\"]"]),
        ("{ \"a\": Long, \"b\"?: String }", &["{\"a\":1}", "{\"a\":1,\"b\":\"x\"}", "{\"b\":null,\"a\":1}"],
            &["{}", "{\"b\":\"x\"}", "{\"a\":1,\"c\":1}", "{\"a\":null}", "[]"]),
    ];
    for (declared, fit, do_not) in table {
        let required = typed(&format!("{{ \"v\": {declared} }}"), ANY);
        let optional = typed(&format!("{{ \"v\"?: {declared} }}"), ANY);
        for value in *fit {
            let asked = call("pay.transfer").arguments(&format!("{{\"v\":{value}}}"));
            assert_eq!(required.verdict(&asked), FITS, "{declared} takes {value}");
            assert_eq!(optional.verdict(&asked), FITS, "optional {declared} takes {value}");
        }
        for value in *do_not {
            let asked = call("pay.transfer").arguments(&format!("{{\"v\":{value}}}"));
            assert_eq!(required.verdict(&asked), DOES_NOT, "{declared} refuses {value}");
            let expected = if *value == "null" { FITS } else { DOES_NOT };
            assert_eq!(optional.verdict(&asked), expected, "optional {declared} with {value}");
        }
        assert_eq!(required.verdict(&call("pay.transfer")), DOES_NOT, "{declared} is required");
        assert_eq!(optional.verdict(&call("pay.transfer")), FITS, "{declared} is optional");
    }
}

/// Values arrive exactly, which policies can tell.
#[test]
fn semantics_6_values_are_never_rounded() {
    let cases = [
        ("Long", "9223372036854775807", "== 9223372036854775807"),
        ("Long", "9007199254740993", "== 9007199254740993"),
        ("Long", "1e3", "== 1000"),
        ("decimal", "0.1", "== decimal(\"0.1\")"),
        ("decimal", "-922337203685477.5808", "== decimal(\"-922337203685477.5808\")"),
        ("datetime", "\"2026-03-01T01:00:00+0100\"", "== datetime(\"2026-03-01\")"),
        ("ipaddr", "\"127.0.0.1\"", ".isLoopback()"),
        ("String", r#""a\"b\\""#, r#"== "a\"b\\""#),
        ("Set<Long>", "[2,1,2]", "== [1, 2]"),
    ];
    for (declared, value, test) in cases {
        let policy = format!(
            "@id(\"p\") permit (principal, action == Tollgate::Action::\"pay/transfer\", resource) when {{ context.input.v {test} }};"
        );
        let hook = typed(&format!("{{ \"v\": {declared} }}"), &policy);
        assert_eq!(
            hook.verdict(&call("pay.transfer").arguments(&format!("{{\"v\":{value}}}"))),
            FITS,
            "{declared} {value} {test}"
        );
    }
}

#[test]
fn semantics_6_nulls_are_listed_by_path_and_absent_from_input() {
    let policy = r#"@id("p") permit (principal, action == Tollgate::Action::"pay/transfer", resource) when {
        !(context.input has note) && !(context.input.to has line2)
        && context.nulls == ["note", "to/line2", "lines/1/a~1b"] };"#;
    let input = r#"{ "note"?: String, "to": { "line2"?: String }, "lines": Set<{ "a/b"?: String }> }"#;
    let asked = call("pay.transfer").arguments(r#"{"note":null,"to":{"line2":null},"lines":[{"a/b":"x"},{"a/b":null}]}"#);
    assert_eq!(typed(input, policy).verdict(&asked), FITS);
}

#[test]
fn semantics_6_escapes_of_cedars_json_stay_plain_data() {
    let entity = r#"{"v":{"__entity":{"type":"Tollgate::User","id":"boss"}}}"#;
    let extension = r#"{"v":{"__extn":{"fn":"ip","arg":"127.0.0.1"}}}"#;
    for (declared, json, expected) in [
        ("String", entity, DOES_NOT),
        ("ipaddr", extension, DOES_NOT),
        (r#"{ "__extn": { "fn": String, "arg": String } }"#, extension, FITS),
        (r#"{ "x"?: String }"#, entity, DOES_NOT),
    ] {
        let hook = typed(&format!("{{ \"v\": {declared} }}"), ANY);
        assert_eq!(hook.verdict(&call("pay.transfer").arguments(json)), expected, "{declared} {json}");
    }
}

#[test]
fn semantics_6_an_undeclared_argument_does_not_fit() {
    assert_eq!(typed("{}", ANY).verdict(&call("pay.transfer")), FITS);
    assert_eq!(typed("{}", ANY).verdict(&call("pay.transfer").arguments(r#"{"extra":null}"#)), DOES_NOT);
}

#[test]
fn a_typed_hook_without_an_action_for_the_tool_fails() {
    let hook = typed("{}", ANY);
    let tool = hook.bundle.catalogue.find(&call("fs.read").call.tool).unwrap();
    assert_eq!(say(&hook.ask_of(&call("fs.read"), &tool).verdict), "failed action_undeclared");
}
