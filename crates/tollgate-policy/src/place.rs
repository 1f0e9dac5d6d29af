//! The encoding of tenant and workspace ids, in directory names and in the ids of `Workspace` entities.

/// `%` as `%25`, `/` as `%2F`, a leading `.` as `%2E`; nothing else.
pub(crate) fn encode(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    for (index, character) in id.chars().enumerate() {
        match character {
            '%' => out.push_str("%25"),
            '/' => out.push_str("%2F"),
            '.' if index == 0 => out.push_str("%2E"),
            other => out.push(other),
        }
    }
    out
}

/// The id whose encoding this is; `None` for a name that is no encoding.
pub(crate) fn decode(name: &str) -> Option<String> {
    let mut parts = name.split('%');
    let mut id = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        id.push(match code {
            "25" => '%',
            "2F" => '/',
            "2E" => '.',
            _ => return None,
        });
        id.push_str(rest);
    }
    (encode(&id) == name).then_some(id)
}

/// The id of the `Workspace` entity. Injective: the only bare `/` is the one between the parts.
pub(crate) fn workspace_entity(tenant: &str, workspace: &str) -> String {
    format!("{}/{}", encode(tenant), encode(workspace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_exactly_one_encoding() {
        for (id, name) in
            [("acme", "acme"), ("a/b", "a%2Fb"), ("50%", "50%25"), (".", "%2E"), ("..", "%2E."), ("a.b", "a.b"), ("é", "é")]
        {
            assert_eq!(encode(id), name);
            assert_eq!(decode(name).as_deref(), Some(id));
        }
        for name in ["%2f", "%41", "a%", "a%2", "%2E%2E", ".a", "a%2Eb"] {
            assert_eq!(decode(name), None, "{name}");
        }
    }

    #[test]
    fn different_workspaces_never_share_an_entity() {
        assert_ne!(workspace_entity("a/b", "c"), workspace_entity("a", "b/c"));
        assert_ne!(workspace_entity("a%2Fb", "c"), workspace_entity("a/b", "c"));
    }
}
