//! Bundles for the tests of the whole product: small trees to vary, and how they get onto a disk.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The files of a bundle, by their paths.
pub type Tree = BTreeMap<String, String>;

/// What a denial by the policy `no-writing` says.
pub const DENY_MESSAGE: &str = "deny-message-3c1f: the desk writes nothing down.";

const SCHEMA: &str = "namespace Tollgate {
  entity Group;
  entity User in [Group] { clearance?: String };
  entity Agent;
  entity ToolProvider;
  entity Tool in [ToolProvider] { effect: String };
  action InvokeTool appliesTo {
    principal: [Agent],
    resource: [Tool],
    context: { call: { attempt: Long }, on_behalf_of?: User },
  };
}
";

const TOOLS: &str = "providers:
  desk: {}
  pay: {}
tools:
  desk.read: { provider: desk, external_name: read, effect: read }
  desk.write: { provider: desk, external_name: write, effect: write }
  pay.send: { provider: pay, external_name: send, effect: destructive }
";

const PAY_SCHEMA: &str = "namespace Tollgate {
  action \"pay/send\" appliesTo {
    principal: [Agent],
    resource: [Tool],
    context: { input: { count: Long, amount?: decimal, address?: ipaddr, note?: String } },
  };
}
";

const PAY_POLICIES: &str = r#"@id("exact")
@code("exact_count")
forbid (principal, action == Tollgate::Action::"pay/send", resource) when { context.input.count == 9007199254740993 };

@id("overflow")
forbid (principal, action == Tollgate::Action::"pay/send", resource) when { context.input.count + 1 < 0 };

@id("forbidden-note")
@code("forbidden_note")
forbid (principal, action == Tollgate::Action::"pay/send", resource) when { context.input has note && context.input.note == "forbidden" };
"#;

/// A bundle with two hooks: `desk` permits everything but `desk.write`, and `pay` looks at the arguments
/// of `pay.send`. A count of 2^53 + 1 is denied, the largest count makes a policy err.
#[must_use]
pub fn gate() -> Tree {
    let desk = format!(
        "@id(\"everything\")\npermit (principal, action, resource);\n\n@id(\"no-writing\")\n@code(\"writing_denied\")\n\
         @message(\"{DENY_MESSAGE}\")\nforbid (principal, action, resource == Tollgate::Tool::\"desk.write\");\n"
    );
    [
        ("bundle.yaml", "format: tollgate/v1\nname: system\n"),
        ("schema.cedarschema", SCHEMA),
        ("tools.yaml", TOOLS),
        ("entities.json", "[]\n"),
        ("hooks/desk/hook.yaml", "id: desk\nkind: cedar\norder: 0\n"),
        ("hooks/desk/desk.cedar", &desk),
        (
            "hooks/pay/hook.yaml",
            "id: pay\nkind: cedar\norder: 10\nmode: forbid_only\ninput: typed\nselectors: { providers: [pay] }\n",
        ),
        ("hooks/pay/schema.cedarschema", PAY_SCHEMA),
        ("hooks/pay/pay.cedar", PAY_POLICIES),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .collect()
}

/// The tree with some files put over it.
#[must_use]
pub fn with(mut tree: Tree, files: &[(&str, &str)]) -> Tree {
    tree.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    tree
}

/// Writes a tree to a directory, which then holds nothing else.
pub fn write(tree: &Tree, directory: &Path) {
    if directory.exists() {
        fs::remove_dir_all(directory).unwrap();
    }
    for (path, text) in tree {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Puts what was prepared in the place of a directory by one rename, so that nobody finds a part of either; where nothing
/// was prepared, the directory vanishes.
pub fn put(prepared: &Path, directory: &Path) {
    match (prepared.exists(), directory.exists()) {
        (true, true) => renameat_with(CWD, prepared, CWD, directory, RenameFlags::EXCHANGE).unwrap(),
        (true, false) => fs::rename(prepared, directory).unwrap(),
        (false, _) => fs::rename(directory, prepared).unwrap(),
    }
    if prepared.is_dir() {
        fs::remove_dir_all(prepared).unwrap();
    } else if prepared.exists() {
        fs::remove_file(prepared).unwrap();
    }
}

/// Publishes a tree as Kubernetes publishes a volume: the files in a directory of their own under a
/// dotted name, the link `..data` to it swapped by one rename, then the old directory removed.
pub fn publish(tree: &Tree, directory: &Path, version: u32) {
    let name = format!("..version_{version}");
    write(tree, &directory.join(&name));
    for path in tree.keys() {
        let top = path.split('/').next().unwrap();
        let link = directory.join(top);
        if !link.is_symlink() {
            symlink(Path::new("..data").join(top), link).unwrap();
        }
    }
    let old = fs::read_link(directory.join("..data")).ok();
    symlink(&name, directory.join("..data_tmp")).unwrap();
    fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    if let Some(old) = old {
        fs::remove_dir_all(directory.join(old)).unwrap();
    }
}
