//! Two bundles that contradict each other, and what a decision of each looks like from end to end.

use std::fmt::Write as _;

use tollgate_client::v1;
use tollgate_domain::{PolicyId, Trace};
use tollgate_tests::trees::{self, Tree};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// Allows.
    Open,
    /// Denies, in its last hook.
    Closed,
}

impl Rival {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Open => Self::Closed,
            Self::Closed => Self::Open,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    /// The hooks in their order. The first and the last are there in both bundles, with policies of each bundle's own.
    const fn hooks(self) -> &'static [&'static str] {
        match self {
            Self::Open => &["first", "open-a", "last"],
            Self::Closed => &["first", "closed-a", "closed-b", "last"],
        }
    }

    /// Its files.
    pub(super) fn tree(self) -> Tree {
        let name = self.name();
        let mut tree = trees::gate();
        tree.retain(|path, _| !path.starts_with("hooks/"));
        for (order, hook) in self.hooks().iter().enumerate() {
            let policy = if self == Self::Closed && *hook == "last" {
                format!(
                    "@id(\"{name}-{hook}\")\n@code(\"{name}_code\")\n@message(\"{name} message\")\nforbid (principal, action, resource);\n"
                )
            } else {
                format!("@id(\"{name}-{hook}\")\npermit (principal, action, resource);\n")
            };
            tree.insert(format!("hooks/{hook}/hook.yaml"), format!("id: {hook}\nkind: cedar\norder: {order}\n"));
            tree.insert(format!("hooks/{hook}/{hook}.cedar"), policy);
        }
        tree
    }

    /// Whose answer this is in all that it says; nobody's where it is neither's.
    pub(super) fn of(answer: &v1::EvaluateResponse) -> Option<Self> {
        let told = (answer.decision(), answer.code.as_str(), answer.hook_id.as_str(), answer.message.as_str());
        match told {
            (v1::Decision::Allow, "", "", "") if answer.valid_until.is_some() => Some(Self::Open),
            (v1::Decision::Deny, "closed_code", "last", "closed message") if answer.valid_until.is_none() => Some(Self::Closed),
            _ => None,
        }
    }

    /// The trace of its every decision, as [`shown`] shows it.
    pub(super) fn trace(self) -> String {
        let mut text = String::new();
        for hook in self.hooks() {
            let said = if self == Self::Closed && *hook == "last" { "Denied closed_code" } else { "Allowed -" };
            writeln!(text, "{hook}: {said} {}-{hook}", self.name()).unwrap();
        }
        text
    }
}

/// Every hook that was asked, what it said, and by which policies.
pub(super) fn shown(trace: &Trace) -> String {
    let mut text = String::new();
    for entry in &trace.hooks {
        let code = entry.code.as_ref().map_or("-", |code| code.as_str());
        let policies: Vec<_> = entry.evidence.determining.iter().chain(&entry.evidence.erroring).map(PolicyId::as_str).collect();
        writeln!(text, "{}: {:?} {code} {}", entry.hook, entry.verdict, policies.join(",")).unwrap();
    }
    text
}
