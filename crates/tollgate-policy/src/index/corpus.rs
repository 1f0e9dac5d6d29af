//! Cedar's own conformance corpus, through the index and the one door from an opinion to a verdict.
//!
//! The corpus is cedar-policy/cedar-integration-tests: hand-written cases, and an archive of cases that a fuzzer
//! made. It is not part of the project: `TOLLGATE_CEDAR_CORPUS` names its directory. `cargo xtask test` runs
//! these tests where there is one, and says so where there is none.

use std::{
    collections::HashMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    str::FromStr,
    thread,
};

use cedar_policy::{Context, EntityId, EntityTypeName, Schema};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tollgate_domain::VerdictKind;

use super::*;
use crate::{files::Mode, hook, limits::COMPILE_STACK_BYTES};

const ARCHIVE: &str = "corpus-tests.tar.gz";
const ARCHIVE_DIGEST: &str = "89c16f19a60cd069e59dfe3b1a64cdc98d8fcbeaf98b2852e8fb6d6b20985df3";

#[derive(Deserialize)]
struct Case {
    policies: String,
    entities: String,
    schema: String,
    requests: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    description: String,
    principal: Uid,
    action: Uid,
    resource: Uid,
    context: serde_json::Value,
    #[serde(default = "validated")]
    validate_request: bool,
    decision: String,
    reason: BTreeSet<String>,
    errors: BTreeSet<String>,
}

fn validated() -> bool {
    true
}

#[derive(Deserialize)]
struct Uid {
    #[serde(rename = "type")]
    of: String,
    id: String,
}

impl Uid {
    fn uid(&self) -> EntityUid {
        EntityUid::from_type_name_and_id(EntityTypeName::from_str(&self.of).unwrap(), EntityId::new(&self.id))
    }
}

/// What was compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    cases: usize,
    requests: usize,
    errors: usize,
    /// Requests of which a forbid erred, and which Cedar allows where a permit for everything stands beside it.
    let_through: usize,
}

fn directory() -> PathBuf {
    PathBuf::from(std::env::var_os("TOLLGATE_CEDAR_CORPUS").expect("TOLLGATE_CEDAR_CORPUS names the corpus"))
}

/// Runs one case; `text` finds a file by its path in the corpus.
fn run(name: &str, case: &Case, text: &dyn Fn(&str) -> String, count: &mut Count) {
    let (schema, _) = Schema::from_cedarschema_str(&text(&case.schema)).unwrap();
    let policies = PolicySet::from_str(&text(&case.policies)).unwrap();
    let entities = Entities::from_json_str(&text(&case.entities), Some(&schema)).unwrap();
    let index = PolicyIndex::new(policies.policies().cloned()).unwrap();
    let authorizer = Authorizer::new();
    count.cases += 1;
    for asked in &case.requests {
        let place = format!("{name}: {}", asked.description);
        let action = asked.action.uid();
        let context = Context::from_json_value(asked.context.clone(), Some((&schema, &action))).unwrap();
        let (principal, resource) = (asked.principal.uid(), asked.resource.uid());
        let request =
            Request::new(principal, action, resource, context, asked.validate_request.then_some(&schema)).expect(&place);
        let opinion = index.evaluate(&authorizer, &request, &entities);
        let allows = asked.decision == "allow";
        let determining = if opinion.forbids.is_empty() { &opinion.permits } else { &opinion.forbids };
        let ids = |policies: &[PolicyId]| policies.iter().map(ToString::to_string).collect();
        assert_eq!((ids(determining), ids(&opinion.errors)), (asked.reason.clone(), asked.errors.clone()), "{place}");
        assert_eq!(!opinion.permits.is_empty(), allows, "{place}");
        let verdict = hook::answer(Mode::RequirePermit, &HashMap::new(), &opinion).verdict.kind();
        let expected = match (asked.errors.is_empty(), allows) {
            (false, _) => VerdictKind::Failed,
            (true, true) => VerdictKind::Allowed,
            (true, false) => VerdictKind::Denied,
        };
        assert_eq!(verdict, expected, "{place}");
        count.requests += 1;
        count.errors += usize::from(!asked.errors.is_empty());
        let erred = policies.policies().filter(|policy| asked.errors.contains(&policy.id().to_string()));
        if erred.filter(|policy| policy.effect() == cedar_policy::Effect::Forbid).count() > 0 {
            ask_with_a_blanket_permit(&place, &policies, &request, &entities, count);
        }
    }
}

/// Cedar skips a forbid that errs, so that beside a permit for everything it lets the request through; a hook does not.
fn ask_with_a_blanket_permit(place: &str, policies: &PolicySet, request: &Request, entities: &Entities, count: &mut Count) {
    let blanket = Policy::parse(Some(cedar_policy::PolicyId::new("blanket")), "permit (principal, action, resource);").unwrap();
    let authorizer = Authorizer::new();
    let all = || policies.policies().cloned().chain([blanket.clone()]);
    let opinion = PolicyIndex::new(all()).unwrap().evaluate(&authorizer, request, entities);
    let verdict = hook::answer(Mode::RequirePermit, &HashMap::new(), &opinion).verdict.kind();
    assert_eq!(verdict, VerdictKind::Failed, "{place}, with a permit for everything");
    let plain = authorizer.is_authorized(request, &PolicySet::from_policies(all()).unwrap(), entities);
    count.let_through += usize::from(plain.decision() == Decision::Allow);
}

fn on_a_deep_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().stack_size(COMPILE_STACK_BYTES).spawn(work).unwrap()
}

#[test]
#[ignore = "needs the Cedar corpus"]
fn the_hand_written_cases_come_out_as_cedar_says() {
    let work = || {
        let root = directory();
        let mut count = Count::default();
        for folder in fs::read_dir(root.join("tests")).unwrap() {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "json") {
                    let case: Case = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
                    run(&path.display().to_string(), &case, &text, &mut count);
                }
            }
        }
        count
    };
    let count = on_a_deep_stack(work).join().unwrap();
    assert_eq!((count.cases, count.requests), (22, 74));
}

#[test]
#[ignore = "needs the Cedar corpus"]
fn the_fuzzed_cases_come_out_as_cedar_says_and_no_forbid_that_errs_lets_a_request_through() {
    let files = std::sync::Arc::new(archive(&directory().join(ARCHIVE)));
    let is_case = |path: &&String| path.strip_suffix(".json").is_some_and(|stem| !stem.ends_with(".entities"));
    let mut names: Vec<String> = files.keys().filter(is_case).cloned().collect();
    names.sort();
    let halves: Vec<Vec<String>> = names.chunks(names.len().div_ceil(2)).map(<[String]>::to_vec).collect();
    let running: Vec<_> = halves
        .into_iter()
        .map(|names| {
            let files = std::sync::Arc::clone(&files);
            on_a_deep_stack(move || {
                let mut count = Count::default();
                for name in names {
                    let case: Case = serde_json::from_str(&files[&name]).unwrap();
                    run(&name, &case, &|path| files[path].clone(), &mut count);
                }
                count
            })
        })
        .collect();
    let mut total = Count::default();
    for count in running.into_iter().map(|thread| thread.join().unwrap()) {
        total.cases += count.cases;
        total.requests += count.requests;
        total.errors += count.errors;
        total.let_through += count.let_through;
    }
    let expected = Count { cases: 7_809, requests: 62_472, errors: 3_782, let_through: 2_096 };
    assert_eq!(total, expected);
}

/// Every file of the archive, by its path.
fn archive(path: &Path) -> HashMap<String, String> {
    let bytes = fs::read(path).unwrap();
    assert_eq!(hex::encode(Sha256::digest(&bytes)), ARCHIVE_DIGEST, "the archive is another one");
    let mut files = HashMap::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let path = entry.path().unwrap().to_str().unwrap().trim_start_matches("./").to_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            files.insert(path, text);
        }
    }
    files
}
