//! Documentation and code name the same things.

use std::{collections::BTreeSet, fs, path::PathBuf};

use tollgate_policy::{FindingCode, limits};

fn docs(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path)
}

/// The codes of this crate: `TG01xx` to `TG06xx`.
fn ours(code: &str) -> bool {
    code.strip_prefix("TG0").and_then(|rest| rest.chars().next()).is_some_and(|group| ('1'..='6').contains(&group))
}

#[test]
fn every_finding_code_has_a_page_and_every_page_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(docs("errors"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
        .filter(|name| ours(name))
        .collect();
    let codes: BTreeSet<String> = FindingCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(pages, codes);
    for code in FindingCode::ALL {
        let page = fs::read_to_string(docs("errors").join(format!("{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# {code}: {}\n", code.title())), "{code} begins with its title");
    }
}

#[test]
fn the_format_says_every_limit() {
    let text = fs::read_to_string(docs("reference/bundle-v1.md")).unwrap();
    let grouped =
        |number: usize| if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) };
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    for (row, value) in [
        ("| files |", grouped(limits::TREE_MAX_FILES)),
        ("| names,", grouped(limits::TREE_MAX_NAMES)),
        ("| depth of directories |", grouped(limits::TREE_MAX_DEPTH)),
        (
            "| one file |",
            format!("{} (`entities.json`: {})", mebibytes(limits::FILE_MAX_BYTES), mebibytes(limits::ENTITIES_MAX_BYTES)),
        ),
        ("| all files together |", mebibytes(limits::TREE_MAX_BYTES)),
        ("| one Cedar policy |", format!("{} bytes", grouped(limits::POLICY_MAX_BYTES))),
        ("| nesting of brackets", limits::NESTING_MAX_DEPTH.to_string()),
        ("| nesting of operators", limits::EXPRESSION_MAX_DEPTH.to_string()),
        ("| policies of one hook |", grouped(limits::POLICIES_MAX_COUNT)),
    ] {
        let line = text.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
        assert!(line.ends_with(&format!("| {value} |")), "{line} should say {value}");
    }
}
