//! Ids, codes and every limit that the domain itself asserts: at the limit, and one past it.

use tollgate_domain::{
    BundleName, CallKey, Code, ExternalToolName, FactKind, InvalidCode, InvalidId, Message, PageLimit, ProviderId, ToolId, codes,
    limits, pseudo_hooks,
};

#[test]
fn an_id_has_1_to_256_bytes() {
    assert_eq!(ToolId::parse(""), Err(InvalidId::Empty));
    assert!(ToolId::parse("x").is_ok());
    assert!(ToolId::parse(&"x".repeat(256)).is_ok());
    assert_eq!(ToolId::parse(&"x".repeat(257)), Err(InvalidId::TooLong(257)));
    // Bytes, not characters.
    assert!(ToolId::parse(&"é".repeat(128)).is_ok());
    assert_eq!(ToolId::parse(&"é".repeat(129)), Err(InvalidId::TooLong(258)));
    assert_eq!(limits::ID_MAX_BYTES, 256);
}

#[test]
fn an_id_has_no_control_character() {
    for control in ["a\0", "\na", "a\tb", "a\u{7f}", "a\u{85}b", "\u{1b}[31m"] {
        assert_eq!(ToolId::parse(control), Err(InvalidId::Control), "{control:?}");
    }
    assert!(ToolId::parse("a b").is_ok());
}

#[test]
fn an_id_is_neither_trimmed_nor_folded_nor_normalised() {
    let distinct = ["tool", "Tool", " tool", "tool ", "t\u{f6}ol", "to\u{308}ol", "tool\u{200b}"];
    for (index, one) in distinct.iter().enumerate() {
        assert_eq!(ToolId::parse(one).unwrap().as_str(), *one);
        for other in &distinct[index + 1..] {
            assert_ne!(ToolId::parse(one).unwrap(), ToolId::parse(other).unwrap());
        }
    }
}

#[test]
fn only_a_provider_id_has_no_slash() {
    assert_eq!(ProviderId::parse("a/b"), Err(InvalidId::Slash));
    assert_eq!(ProviderId::parse(""), Err(InvalidId::Empty));
    assert!(ToolId::parse("a/b").is_ok());
    assert!(ExternalToolName::parse("a/b").is_ok());
}

#[test]
fn an_id_that_is_read_back_is_checked_again() {
    assert!(serde_json::from_str::<ToolId>(r#""tool""#).is_ok());
    assert!(serde_json::from_str::<ToolId>(r#""""#).is_err());
    assert!(serde_json::from_str::<ToolId>(r#""a\u0000""#).is_err());
    assert!(serde_json::from_str::<ProviderId>(r#""a/b""#).is_err());
    assert!(serde_json::from_str::<CallKey>(r#""""#).is_err());
}

#[test]
fn a_call_key_is_bounded_like_an_id() {
    assert!(CallKey::parse(&"x".repeat(256)).is_ok());
    assert_eq!(CallKey::parse(&"x".repeat(257)), Err(InvalidId::TooLong(257)));
    assert_eq!(CallKey::parse(""), Err(InvalidId::Empty));
}

#[test]
fn g10_a_code_is_1_to_128_of_a_small_alphabet() {
    for good in ["a", "A9", "0", "a.b_c-d", &"x".repeat(128)] {
        assert_eq!(Code::parse(good).unwrap().as_str(), good);
    }
    for bad in ["", ".a", "_a", "-a", "a b", "a/b", "é", "a\n", &"x".repeat(129)] {
        assert_eq!(Code::parse(bad), Err(InvalidCode), "{bad:?}");
    }
}

#[test]
fn every_code_and_pseudo_hook_of_the_product_is_well_formed_and_there_once() {
    let mut seen = std::collections::HashSet::new();
    for code in codes::ALL {
        assert!(Code::parse(code).is_ok(), "{code}");
        assert!(seen.insert(code), "{code} twice");
    }
    assert_eq!(codes::TOOL_EXECUTION_CANCELLED.as_str(), "tool_execution_cancelled");
    for hook in pseudo_hooks::ALL {
        assert!(tollgate_domain::HookId::parse(hook).is_ok());
    }
    assert_eq!(BundleName::parse(BundleName::unnamed().as_str()).unwrap(), BundleName::unnamed());
}

#[test]
fn a_message_is_cut_at_a_character_at_2048_bytes() {
    assert_eq!(Message::new("x".repeat(2_048)).tell().len(), 2_048);
    assert_eq!(Message::new("x".repeat(2_049)).tell().len(), 2_048);
    assert_eq!(Message::new("x".repeat(2_047) + "é").tell().len(), 2_047);
    assert_eq!(Message::new("x".repeat(2_046) + "é").tell().len(), 2_048);
}

#[test]
fn g20_a_page_has_1_to_200_entries_and_100_where_nobody_says() {
    assert_eq!(PageLimit::new(0).unwrap().get(), 100);
    assert_eq!(PageLimit::new(1).unwrap().get(), 1);
    assert_eq!(PageLimit::new(200).unwrap().get(), 200);
    assert!(PageLimit::new(201).is_err());
}

#[test]
fn a_refusal_keeps_the_first_32_findings() {
    let finding = |line| tollgate_domain::Finding { code: "TG0204".to_owned(), path: "bundle.yaml".to_owned(), line };
    let findings: Vec<_> = (1..=33).map(finding).collect();
    assert_eq!(tollgate_domain::kept_findings(&findings[..32]), findings[..32]);
    assert_eq!(tollgate_domain::kept_findings(&findings), findings[..32]);
}

#[test]
fn the_name_of_a_fact_is_the_tag_that_it_is_stored_under() {
    for kind in FactKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}
