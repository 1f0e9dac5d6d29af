//! The canonical form, against the published examples of RFC 8785.

use super::Json;

fn canonical(text: &str) -> String {
    let mut out = String::new();
    Json::parse(text.as_bytes()).unwrap().write_canonical(&mut out);
    out
}

#[test]
fn the_sample_of_rfc_8785_section_3_2_2() {
    let sample = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"#,
        r#""numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical(sample), expected);
}

#[test]
fn names_are_sorted_by_their_utf16_units_as_in_section_3_2_3() {
    let sample = r#"{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let expected = concat!(
        r#"{"\r":"Carriage Return","1":"One","#,
        "\"\u{80}\":\"Control\",",
        "\"ö\":\"Latin Small Letter O With Diaeresis\",",
        "\"€\":\"Euro Sign\",",
        "\"😀\":\"Emoji: Grinning Face\",",
        "\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    assert_eq!(canonical(sample), expected);
}

#[test]
fn numbers_with_a_fraction_or_exponent_are_written_as_in_appendix_b() {
    for (written, expected) in [
        ("0.0", "0"),
        ("-0.0", "0"),
        ("5e-324", "5e-324"),
        ("-5e-324", "-5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("9007199254740992.0", "9007199254740992"),
        ("295147905179352830000.0", "295147905179352830000"),
        ("9.999999999999997e22", "9.999999999999997e+22"),
        ("1e23", "1e+23"),
        ("1.0000000000000001e23", "1.0000000000000001e+23"),
        ("999999999999999700000.0", "999999999999999700000"),
        ("1e21", "1e+21"),
        ("9.999999999999997e-7", "9.999999999999997e-7"),
        ("0.000001", "0.000001"),
        ("333333333.33333325", "333333333.33333325"),
        ("333333333.3333333", "333333333.3333333"),
        ("-0.0000033333333333333333", "-0.0000033333333333333333"),
        ("1424953923781206.2", "1424953923781206.2"),
    ] {
        assert_eq!(canonical(written), expected, "{written}");
    }
}

#[test]
fn integers_keep_every_digit_which_is_where_we_leave_the_rfc() {
    for exact in ["0", "-1", "9007199254740993", "-9223372036854775808", "18446744073709551615", "100000000000000000000000"] {
        assert_eq!(canonical(exact), exact);
    }
    assert_eq!(canonical("-0"), "0");
    assert_ne!(canonical("9007199254740992"), canonical("9007199254740993"));
}

#[test]
fn strings_escape_only_what_must_be() {
    let sample = r#""\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u007f\u0080\u2028\/\"\\""#;
    let expected = "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\u{7f}\u{80}\u{2028}/\\\"\\\\\"";
    assert_eq!(canonical(sample), expected);
}

#[test]
fn white_space_and_order_do_not_matter_and_array_order_does() {
    assert_eq!(canonical("{ \"b\" : [ 1 , 2 ] , \"a\" : { } }"), r#"{"a":{},"b":[1,2]}"#);
    assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
}
