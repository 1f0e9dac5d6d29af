//! A look at Cedar text before Cedar's parser sees it: where each policy is, and how deeply it nests.
//!
//! Cedar's parser is recursive and has no guard, so text that could exhaust its stack never reaches it.

use std::ops::Range;

/// One statement of a policy file, as far as brackets, strings and comments tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// From its first character to its semicolon, inclusive.
    pub(crate) range: Range<usize>,
    /// How deeply its brackets nest.
    pub(crate) depth: usize,
    /// Where each annotation begins.
    pub(crate) annotations: Vec<usize>,
}

/// Splits a policy file into its statements.
pub(crate) fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut current: Option<Statement> = None;
    let mut depth = 0_usize;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        if character.is_whitespace() {
            continue;
        }
        if character == '/' && rest.peek().is_some_and(|(_, next)| *next == '/') {
            while rest.next_if(|(_, next)| *next != '\n').is_some() {}
            continue;
        }
        let statement = current.get_or_insert_with(|| Statement { range: at..at, depth: 0, annotations: Vec::new() });
        let mut end = at + character.len_utf8();
        match character {
            '"' => {
                let mut escaped = false;
                for (at, inside) in rest.by_ref() {
                    end = at + inside.len_utf8();
                    if inside == '"' && !escaped {
                        break;
                    }
                    escaped = inside == '\\' && !escaped;
                }
            }
            '(' | '[' | '{' => {
                depth += 1;
                statement.depth = statement.depth.max(depth);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '@' if depth == 0 => statement.annotations.push(at),
            _ => {}
        }
        statement.range.end = end;
        if character == ';' && depth == 0 {
            found.extend(current.take());
        }
    }
    found.extend(current);
    found
}

/// How deeply the brackets of a text nest.
pub(crate) fn nesting(text: &str) -> usize {
    statements(text).iter().map(|statement| statement.depth).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        statements(text).into_iter().filter_map(|statement| text.get(statement.range)).collect()
    }

    #[test]
    fn statements_end_at_their_own_semicolon() {
        assert_eq!(split("// a; b\n permit(principal); // tail\nforbid(x);"), ["permit(principal);", "forbid(x);"]);
        assert_eq!(
            split("@id(\"a;b\\\"\") permit(x) when { a == \";}\" };"),
            ["@id(\"a;b\\\"\") permit(x) when { a == \";}\" };"]
        );
        assert_eq!(split("  // nothing\n"), [""; 0]);
        assert_eq!(split("permit(a); forbid("), ["permit(a);", "forbid("]);
        assert_eq!(split("@id(\"unterminated"), ["@id(\"unterminated"]);
    }

    #[test]
    fn nesting_counts_brackets_outside_strings_and_comments() {
        assert_eq!(nesting("a((b[{c}]))"), 4);
        assert_eq!(nesting("\"((((\" // ((((\n ()"), 1);
        assert_eq!(nesting("))))(("), 2);
    }
}
