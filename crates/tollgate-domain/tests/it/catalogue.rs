//! The catalogue: which tools it knows, and what it says of them.

use std::collections::HashMap;

use tollgate_domain::{Catalogue, ToolDeclaration, ToolEffect, ToolRef};

use crate::sample::attributes;

fn catalogue() -> Catalogue {
    let declaration = ToolDeclaration {
        provider: "mail".parse().unwrap(),
        external_name: "send_mail".parse().unwrap(),
        attributes: attributes(ToolEffect::Write),
    };
    Catalogue {
        tools: HashMap::from([("mail.send".parse().unwrap(), declaration)]),
        unknown_of: HashMap::from([("files".parse().unwrap(), attributes(ToolEffect::Destructive))]),
        unknown: None,
    }
}

fn tool(id: &str, provider: Option<&str>, name: Option<&str>) -> ToolRef {
    ToolRef {
        id: id.parse().unwrap(),
        provider: provider.map(|provider| provider.parse().unwrap()),
        external_name: name.map(|name| name.parse().unwrap()),
    }
}

#[test]
fn m02_b07_a_declared_tool_is_what_the_catalogue_says_whatever_the_call_leaves_out() {
    for provider in [None, Some("mail")] {
        for name in [None, Some("send_mail")] {
            let facts = catalogue().find(&tool("mail.send", provider, name)).unwrap();
            assert!(facts.declared);
            assert_eq!(facts.provider.unwrap().as_str(), "mail");
            assert_eq!(facts.external_name.unwrap().as_str(), "send_mail");
            assert_eq!(facts.attributes.effect, ToolEffect::Write);
        }
    }
}

#[test]
fn m02_a_declared_tool_under_another_provider_or_name_is_a_mismatch() {
    for (provider, name) in [
        (Some("files"), None),
        (Some("Mail"), None),
        (None, Some("sendmail")),
        (Some("mail"), Some("Send_Mail")),
        (Some("files"), Some("send_mail")),
    ] {
        assert_eq!(catalogue().find(&tool("mail.send", provider, name)).unwrap_err().as_str(), "tool_mismatch");
    }
}

#[test]
fn m02_an_undeclared_tool_is_unknown_unless_the_catalogue_speaks_of_its_like() {
    let find = |catalogue: &Catalogue, provider| catalogue.find(&tool("new", provider, Some("x")));
    assert_eq!(find(&catalogue(), None).unwrap_err().as_str(), "unknown_tool");
    assert_eq!(find(&catalogue(), Some("mail")).unwrap_err().as_str(), "unknown_tool");
    let of_files = find(&catalogue(), Some("files")).unwrap();
    assert_eq!((of_files.attributes.effect, of_files.declared), (ToolEffect::Destructive, false));
    assert_eq!(of_files.external_name.unwrap().as_str(), "x");
    let open = Catalogue { unknown: Some(attributes(ToolEffect::Read)), ..catalogue() };
    assert_eq!(find(&open, None).unwrap().attributes.effect, ToolEffect::Read);
    assert_eq!(find(&open, Some("mail")).unwrap().attributes.effect, ToolEffect::Read);
    assert_eq!(find(&open, Some("files")).unwrap().attributes.effect, ToolEffect::Destructive);
}

/// Policies compare with these.
#[test]
fn every_effect_has_its_own_name() {
    let names = [ToolEffect::Read, ToolEffect::Write, ToolEffect::Destructive].map(ToolEffect::as_str);
    assert_eq!(names, ["read", "write", "destructive"]);
}
