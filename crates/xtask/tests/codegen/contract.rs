//! Rules of the wire contract: every element is documented, enumerations start at nothing, content
//! travels as bytes, and no framework's vocabulary gets in.

use std::collections::BTreeSet;

use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, MessageOptions, ServiceDescriptorProto,
    field_descriptor_proto::Type,
};

use crate::{SENSITIVE, descriptors};

/// Words of frameworks and protocols that callers may use and the contract must not know.
const FOREIGN: [&str; 16] = [
    "anthropic",
    "autogen",
    "bedrock",
    "crewai",
    "gemini",
    "jsonrpc",
    "langchain",
    "langgraph",
    "llamaindex",
    "mcp",
    "modelcontextprotocol",
    "openai",
    "pydantic",
    "semantickernel",
    "smolagents",
    "vertex",
];

/// One named thing of a file: where its comment would be, and what to call it.
struct Element {
    path: Vec<i32>,
    name: String,
}

#[test]
fn every_element_has_a_comment() {
    for file in own_files() {
        let info = file.source_code_info.as_ref().unwrap();
        let commented: BTreeSet<&[i32]> = info
            .location
            .iter()
            .filter(|location| !location.leading_comments().trim().is_empty() || !location.trailing_comments().trim().is_empty())
            .map(|location| location.path.as_slice())
            .collect();
        let bare: Vec<_> = elements(&file)
            .into_iter()
            .filter(|element| !commented.contains(element.path.as_slice()))
            .map(|element| element.name)
            .collect();
        assert!(bare.is_empty(), "{}: no comment on {bare:#?}", file.name());
    }
}

#[test]
fn b28_the_contract_names_no_framework_and_no_mcp() {
    for file in own_files() {
        for import in &file.dependency {
            let known = import.starts_with("google/protobuf/") || import.starts_with("tollgate/v1/");
            assert!(known, "{} imports {import}", file.name());
        }
        for Element { name, .. } in elements(&file) {
            let flat = name.to_lowercase().replace('_', "");
            let foreign = FOREIGN.iter().find(|word| flat.contains(*word));
            assert!(foreign.is_none(), "{}: {name} names {foreign:?}", file.name());
        }
    }
}

#[test]
fn enumerations_start_at_unspecified() {
    for file in own_files() {
        for enumeration in file.enum_type.iter().chain(messages(&file).flat_map(|message| &message.enum_type)) {
            let prefix = screaming(enumeration.name());
            let first = enumeration.value.first().unwrap();
            assert_eq!((first.name(), first.number()), (format!("{prefix}_UNSPECIFIED").as_str(), 0));
            for value in &enumeration.value {
                assert!(value.name().starts_with(&prefix), "{} should start with {prefix}", value.name());
            }
        }
    }
}

#[test]
fn content_travels_as_bytes() {
    for (message, field) in fields() {
        let name = field.name();
        let foreign = field.type_name().strip_prefix(".google.protobuf.");
        assert!(
            matches!(foreign, None | Some("Duration" | "Timestamp")),
            "{message}.{name}: a {foreign:?} rounds or hides what it carries"
        );
        if name.ends_with("_json") || name.contains("arguments") && !name.ends_with("_bytes") {
            assert_eq!(field.r#type(), Type::Bytes, "{message}.{name}: JSON is judged as it was sent");
        }
    }
}

#[test]
fn g04_fields_that_may_hold_content_are_not_printed() {
    let fields = fields();
    for (message, field) in &fields {
        let errors_own_text = (message.as_str(), field.name()) == ("StreamError", "message");
        let suspect = field.r#type() == Type::Bytes || matches!(field.name(), "message" | "error_message");
        if suspect && !errors_own_text {
            let listed = SENSITIVE.contains(&(message.as_str(), field.name()));
            assert!(listed, "{message}.{} may hold content: list it as sensitive", field.name());
        }
    }
    for (message, name) in SENSITIVE {
        let exists = fields.iter().any(|(of, field)| of == message && field.name() == name);
        assert!(exists, "{message}.{name} is listed as sensitive and does not exist");
    }
}

/// The files of the contract, without what they import.
fn own_files() -> impl Iterator<Item = FileDescriptorProto> {
    descriptors().file.into_iter().filter(|file| file.package() == "tollgate.v1")
}

fn messages(file: &FileDescriptorProto) -> impl Iterator<Item = &DescriptorProto> {
    let nested = file.message_type.iter().flat_map(|message| &message.nested_type);
    file.message_type.iter().chain(nested)
}

fn fields() -> Vec<(String, FieldDescriptorProto)> {
    own_files()
        .flat_map(|file| {
            messages(&file)
                .flat_map(|message| message.field.iter().map(|field| (message.name().to_owned(), field.clone())))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Everything in a file that a reader of the contract meets by name. The numbers are the field numbers
/// of `descriptor.proto`, of which comment paths are made.
fn elements(file: &FileDescriptorProto) -> Vec<Element> {
    let mut found = Vec::new();
    for (index, message) in (0..).zip(&file.message_type) {
        add_message(&mut found, &[4, index], message);
    }
    for (index, enumeration) in (0..).zip(&file.enum_type) {
        add_enumeration(&mut found, &[5, index], enumeration);
    }
    for (index, service) in (0..).zip(&file.service) {
        add_service(&mut found, &[6, index], service);
    }
    found
}

fn add_message(found: &mut Vec<Element>, path: &[i32], message: &DescriptorProto) {
    if message.options.as_ref().is_some_and(MessageOptions::map_entry) {
        return; // made by the compiler for a map
    }
    add(found, path, &[], message.name());
    for (index, field) in (0..).zip(&message.field) {
        add(found, path, &[2, index], &format!("{}.{}", message.name(), field.name()));
    }
    for (index, nested) in (0..).zip(&message.nested_type) {
        add_message(found, &[path, &[3, index]].concat(), nested);
    }
    for (index, nested) in (0..).zip(&message.enum_type) {
        add_enumeration(found, &[path, &[4, index]].concat(), nested);
    }
    for (index, oneof) in (0..).zip(&message.oneof_decl) {
        let made_by_compiler = message.field.iter().any(|field| field.oneof_index == Some(index) && field.proto3_optional());
        if !made_by_compiler {
            add(found, path, &[8, index], &format!("{}.{}", message.name(), oneof.name()));
        }
    }
}

fn add_enumeration(found: &mut Vec<Element>, path: &[i32], enumeration: &EnumDescriptorProto) {
    add(found, path, &[], enumeration.name());
    for (index, value) in (0..).zip(&enumeration.value) {
        add(found, path, &[2, index], value.name());
    }
}

fn add_service(found: &mut Vec<Element>, path: &[i32], service: &ServiceDescriptorProto) {
    add(found, path, &[], service.name());
    for (index, method) in (0..).zip(&service.method) {
        add(found, path, &[2, index], &format!("{}.{}", service.name(), method.name()));
    }
}

fn add(found: &mut Vec<Element>, path: &[i32], rest: &[i32], name: &str) {
    found.push(Element { path: [path, rest].concat(), name: name.to_owned() });
}

/// `OwnerKind` as `OWNER_KIND`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}
