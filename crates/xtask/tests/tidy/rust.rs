//! Rust sources as words, without comments: what the code names and what its literals say.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A word of the code.
#[derive(Debug, PartialEq)]
pub(crate) enum Word {
    /// An identifier, a punctuation mark, or a bracket.
    Code(String),
    /// A literal, with its quotes.
    Literal(String),
}

/// The words of a source in order. Documentation comments are not among them.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    flatten(text.parse().unwrap(), &mut words);
    words
}

/// The paths that a source names and that start with `krate`, one for each leaf of a `use` tree:
/// `tonic::{Code, metadata::Ascii}` names `tonic::Code` and `tonic::metadata::Ascii`.
pub(crate) fn paths(words: &[Word], krate: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let qualified = index >= 2 && is(words.get(index - 1), ":") && is(words.get(index - 2), ":");
        let absolute = index >= 3 && !matches!(words.get(index - 3), Some(Word::Code(before)) if is_name(before));
        if is(Some(word), krate) && (!qualified || absolute) {
            leaves(words, index + 1, krate, &mut found);
        }
    }
    found
}

/// Follows a path from behind its first name, and returns the index behind it.
fn leaves(words: &[Word], mut index: usize, so_far: &str, found: &mut Vec<String>) -> usize {
    let mut path = so_far.to_owned();
    while is(words.get(index), ":") && is(words.get(index + 1), ":") {
        index += 2;
        match words.get(index) {
            Some(Word::Code(open)) if open == "{" => {
                index += 1;
                while index < words.len() && !is(words.get(index), "}") {
                    if let Some(Word::Code(name)) = words.get(index)
                        && is_name(name)
                    {
                        index = leaves(words, index + 1, &format!("{path}::{name}"), found);
                    } else {
                        index += 1;
                    }
                }
                return index + 1;
            }
            Some(Word::Code(name)) if is_name(name) || name == "*" => {
                path = format!("{path}::{name}");
                index += 1;
            }
            _ => break,
        }
    }
    found.push(path);
    if is(words.get(index), "as") { index + 2 } else { index }
}

fn flatten(stream: TokenStream, words: &mut Vec<Word>) {
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push(Word::Code(open.to_owned()));
                flatten(group.stream(), words);
                words.push(Word::Code(close.to_owned()));
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                tokens.next_if(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '!'));
                let documentation = tokens.next_if(is_documentation);
                if documentation.is_none() {
                    words.push(Word::Code("#".to_owned()));
                }
            }
            TokenTree::Literal(literal) => words.push(Word::Literal(literal.to_string())),
            TokenTree::Ident(_) | TokenTree::Punct(_) => words.push(Word::Code(token.to_string())),
        }
    }
}

fn is_documentation(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    group.stream().into_iter().next().is_some_and(|first| first.to_string() == "doc")
}

fn is(word: Option<&Word>, code: &str) -> bool {
    matches!(word, Some(Word::Code(own)) if own == code)
}

fn is_name(code: &str) -> bool {
    code.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[test]
fn paths_are_found_in_use_trees_and_in_place_and_not_in_comments() {
    let source = r#"
        //! tonic::Hidden
        use tonic::{Code, metadata::{Ascii, Binary as B}, transport::*};
        /// tonic::Hidden
        fn f() -> ::tonic::Status { let _ = "tonic::Hidden"; other::tonic::Kept; tonic::Request::new(()) }
    "#;
    let expected = [
        "tonic::Code",
        "tonic::metadata::Ascii",
        "tonic::metadata::Binary",
        "tonic::transport::*",
        "tonic::Status",
        "tonic::Request::new",
    ];
    assert_eq!(paths(&words(source), "tonic"), expected);
}
