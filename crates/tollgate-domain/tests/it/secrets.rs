//! What a call carries and must not leave: nothing prints it.

use tollgate_domain::{Arguments, CallRecord, Claims, InvalidArguments, Message, Sensitive, Verdict};

use crate::sample::call;

const SENTINEL: &str = "swordfish";

#[test]
fn b19_no_debug_text_holds_an_argument_a_claimed_attribute_or_a_message() {
    let secret = format!("{{\"{SENTINEL}\":\"{SENTINEL}\"}}");
    let mut call = call(&secret);
    call.claims = Claims { attributes: Some(Arguments::parse(secret.as_bytes()).unwrap()), ..Claims::default() };
    let denied = Verdict::Denied { code: "limit".parse().unwrap(), message: Some(Message::new(SENTINEL.to_owned())) };
    for told in [
        format!("{call:?}"),
        format!("{call:#?}"),
        format!("{:?}", call.arguments.value()),
        format!("{denied:?}"),
        format!("{:?}", Sensitive::new(SENTINEL)),
    ] {
        assert!(!told.contains(SENTINEL), "{told}");
    }
    assert_eq!(format!("{:?}", call.arguments), "[25 bytes of arguments]");
    assert_eq!(format!("{:?}", call.arguments.value()), "[json]");
    assert_eq!(format!("{:?}", Sensitive::new(SENTINEL)), "[sensitive]");
}

#[test]
fn b19_the_kept_part_of_a_call_has_no_argument_no_attribute_and_no_name_of_one() {
    let secret = format!("{{\"{SENTINEL}\":\"{SENTINEL}\"}}");
    let mut call = call(&secret);
    call.claims.attributes = Some(Arguments::parse(secret.as_bytes()).unwrap());
    let record = serde_json::to_string(&CallRecord::of(&call, None, true)).unwrap();
    assert!(!record.contains(SENTINEL), "{record}");
    assert!(record.contains("\"arguments_bytes\":25"));
}

#[test]
fn l17_an_error_about_arguments_quotes_none_of_them() {
    for broken in [r#"{"swordfish":1,"swordfish":2}"#, r#"{"swordfish":"#, r#"{"swordfish":1e999}"#, r#"["swordfish"]"#] {
        let error: InvalidArguments = Arguments::parse(broken.as_bytes()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(SENTINEL));
    }
}
