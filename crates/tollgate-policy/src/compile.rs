//! From a tree of files to a bundle: read, check, parse, validate, warm up; all findings, or none and a bundle.

mod hooks;
mod places;
mod warm;

use std::{path::Path, sync::Arc, thread};

use tollgate_domain::{Bundle, BundleName, Catalogue, Code, HookDefinition, Revision};

use crate::{
    codes::FindingCode,
    diagnostic::{Findings, Report, SourceText, Summary},
    files::{BundleFile, ToolsFile, UnknownTools},
    limits::COMPILE_STACK_BYTES,
    manifest::{self, Completeness},
    schema::CompiledSchema,
    store::EntityStore,
    tree::{Listing, NoTree, Tree},
    yaml::Reader,
};
use places::{BUNDLE, ENTITIES, Places, SCHEMA, TOOLS};

/// How far compiling stands back, of 19.
#[cfg(target_os = "linux")]
const COMPILE_NICENESS: i32 = 10;

/// Whose hooks a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The organisation's and its workspaces'.
    Managed,
    /// One sidecar's.
    Local,
}

/// What came of compiling a tree.
pub(crate) struct Compiled {
    /// There exactly when the report is clean.
    pub(crate) bundle: Option<Bundle>,
    pub(crate) report: Report,
}

/// Every finding about the bundle in a directory.
#[must_use]
pub fn check(directory: &Path) -> Report {
    from_directory(directory, Kind::Managed).report
}

/// The bundle in a directory, or every reason why it is none.
pub fn load(directory: &Path) -> Result<Bundle, Box<Report>> {
    let Compiled { bundle, report } = from_directory(directory, Kind::Managed);
    bundle.ok_or_else(|| report.into())
}

/// The hooks of a sidecar's own configuration, from a bundle of their own without `workspaces/`.
pub fn load_local(directory: &Path) -> Result<Vec<HookDefinition>, Box<Report>> {
    let Compiled { bundle, report } = from_directory(directory, Kind::Local);
    bundle.map(|bundle| bundle.hooks).ok_or_else(|| report.into())
}

fn from_directory(directory: &Path, kind: Kind) -> Compiled {
    match Listing::of(directory) {
        Ok(listing) => {
            let (tree, mut findings) = listing.read();
            manifest::check(&tree, &mut findings);
            compile(tree, findings, kind)
        }
        Err(no_tree) => Compiled { bundle: None, report: no_tree.report() },
    }
}

/// Compiles a tree that was read, on a thread with a stack that Cedar's recursion cannot exhaust.
pub(crate) fn compile(tree: Tree, findings: Findings, kind: Kind) -> Compiled {
    let work = move || {
        yield_to_calls();
        Compiler::new(tree, findings, kind).run()
    };
    let thread = thread::Builder::new().name("tollgate-compile".into()).stack_size(COMPILE_STACK_BYTES).spawn(work);
    if let Ok(Ok(compiled)) = thread.map(thread::JoinHandle::join) {
        return compiled;
    }

    let mut findings = Findings::default();
    findings
        .about(FindingCode::NotCompiled, "", "the bundle could not be compiled")
        .hint("this is a defect of Tollgate, or memory is short");
    Compiled { bundle: None, report: findings.into_report(None, Summary::default()) }
}

/// Lets this thread run where no other wants to: whoever waits for a decision goes before a bundle that is to come.
fn yield_to_calls() {
    // On Linux alone is a thread's niceness its own. Without the right to it, compiling is as important as the rest.
    #[cfg(target_os = "linux")]
    rustix::process::nice(COMPILE_NICENESS).ok();
}

/// Whether a tree is complete by its manifest.
pub(crate) fn completeness(tree: &Tree) -> Completeness {
    manifest::check(tree, &mut Findings::default())
}

impl NoTree {
    /// The report about a directory that holds no tree at all.
    pub(crate) fn report(self) -> Report {
        let mut findings = Findings::default();
        let (code, message, hint) = match self {
            Self::Missing => (FindingCode::NotReadable, "the directory does not exist", "check the path"),
            Self::Unreadable => (FindingCode::NotReadable, "the directory cannot be read", "check its permissions"),
            Self::Empty => {
                (FindingCode::FileMissing, "the directory is empty", "a bundle has at least bundle.yaml and schema.cedarschema")
            }
        };
        findings.about(code, "", message).hint(hint);
        findings.into_report(None, Summary::default())
    }

    /// The code of its refusal.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "source_missing",
            Self::Unreadable => "source_unreadable",
            Self::Empty => "source_empty",
        }
    }
}

struct Compiler {
    tree: Tree,
    findings: Findings,
    kind: Kind,
}

/// What every hook of a bundle is compiled against.
struct Shared {
    kind: Kind,
    tools: Arc<ToolsFile>,
    unknown: UnknownTools,
    schema: Option<CompiledSchema>,
    entities: Option<Arc<EntityStore>>,
}

impl Compiler {
    const fn new(tree: Tree, findings: Findings, kind: Kind) -> Self {
        Self { tree, findings, kind }
    }

    fn run(mut self) -> Compiled {
        let places = Places::of(&self.tree, self.kind, &mut self.findings);
        let file = self.required(BUNDLE).and_then(|source| BundleFile::read(&mut self.reader(&source)));
        let (name, serial, unknown) = file.map_or_else(Default::default, |file| (file.name, file.serial, file.unknown_tools));
        let tools = self.tree.text(TOOLS, &mut self.findings);
        let tools = tools.and_then(|source| ToolsFile::read(&mut self.reader(&source))).unwrap_or_default();
        let tools = Arc::new(tools);
        let schema = self.required(SCHEMA).and_then(|source| CompiledSchema::base(&source, &mut self.findings));
        let source = self.tree.text(ENTITIES, &mut self.findings);
        let entities =
            schema.as_ref().and_then(|schema| EntityStore::load(schema, source.as_ref(), &tools, TOOLS, &mut self.findings));
        let shared = Shared { kind: self.kind, tools, unknown, schema, entities: entities.map(Arc::new) };
        let compiled = hooks::compile_all(&self.tree, &places, &shared, &mut self.findings);
        let summary = Summary {
            hooks: compiled.iter().filter(|hook| hook.enabled).count(),
            policies: compiled.iter().filter(|hook| hook.enabled).map(|hook| hook.policies).sum(),
            tools: shared.tools.tools.len(),
            entities: shared.entities.as_ref().map_or(0, |entities| entities.len()),
        };
        let hooks = compiled.into_iter().filter(|hook| hook.enabled).filter_map(|hook| hook.definition).collect();
        let bundle = self.bundle(name.clone(), serial, &shared, hooks);
        let report = self.findings.into_report(name, summary);
        Compiled { bundle: bundle.filter(|_| report.is_clean()), report }
    }

    fn bundle(
        &self,
        name: Option<BundleName>,
        serial: Option<u64>,
        shared: &Shared,
        hooks: Vec<HookDefinition>,
    ) -> Option<Bundle> {
        let digest = self.tree.digest?;
        let catalogue = Catalogue {
            tools: shared.tools.tools.clone(),
            unknown_of: shared.unknown.by_provider.clone(),
            unknown: shared.unknown.any.clone(),
        };
        Some(Bundle { name: name?, serial, revision: Revision::parse(&digest.to_string()).ok()?, digest, catalogue, hooks })
    }

    fn required(&mut self, path: &str) -> Option<SourceText> {
        if !self.tree.files.contains_key(path) {
            self.findings.about(FindingCode::FileMissing, path, format!("the bundle has no `{path}`"));
        }
        self.tree.text(path, &mut self.findings)
    }

    fn reader<'a>(&'a mut self, source: &'a SourceText) -> Reader<'a> {
        Reader { source, findings: &mut self.findings }
    }
}

/// A code that this crate itself gives to refusals.
pub(crate) fn refusal(code: &str) -> Code {
    #[expect(clippy::expect_used, reason = "called with constants only, each of which a test parses")]
    Code::parse(code).expect("a valid code")
}
