//! The sample bundle in `policies/`: what it decides, as a matrix that people review.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeSet, fmt::Write as _, fs};

use tollgate_domain::{Bundle, Recorded};
use tollgate_tests::{
    bench::{self, Bench},
    calls::{ApprovalText, CallText},
    documents::copy,
    review::{self, root},
};

/// Every tool of the catalogue with usual arguments; payments with several amounts.
const TOOLS: [(&str, &str, &str); 20] = [
    ("search.knowledge_base", "", r#"{"query": "return policy"}"#),
    ("web.search", "", r#"{"query": "return policy"}"#),
    ("crm.read_record", "", r#"{"customer": "c-17"}"#),
    ("crm.update_record", "", r#"{"customer": "c-17", "phone": "…"}"#),
    ("crm.delete_record", "", r#"{"customer": "c-17"}"#),
    ("mail.search", "", r#"{"query": "invoice"}"#),
    ("mail.send", "", r#"{"to": "ada@customer.example", "subject": "Your refund", "body": "…"}"#),
    ("payments.lookup", "", r#"{"order": "o-1001"}"#),
    ("payments.refund", "40.00 EUR", r#"{"amount": 40.00, "currency": "EUR", "order": "o-1001"}"#),
    ("payments.refund", "400.00 EUR", r#"{"amount": 400.00, "currency": "EUR", "order": "o-1001"}"#),
    ("payments.refund", "40.00 USD", r#"{"amount": 40.00, "currency": "USD", "order": "o-1001"}"#),
    ("payments.transfer", "50.00 EUR", r#"{"amount": 50.00, "currency": "EUR", "iban": "DE02120300000000202051"}"#),
    ("payments.transfer", "2500.00 EUR", r#"{"amount": 2500.00, "currency": "EUR", "iban": "DE02120300000000202051"}"#),
    ("payments.transfer", "9500.00 EUR", r#"{"amount": 9500.00, "currency": "EUR", "iban": "DE02120300000000202051"}"#),
    ("tickets.read", "", r#"{"ticket": "t-7"}"#),
    ("tickets.comment", "", r#"{"ticket": "t-7", "text": "…"}"#),
    ("files.read", "", r#"{"path": "notes.txt"}"#),
    ("files.write", "", r#"{"path": "notes.txt", "text": "…"}"#),
    ("files.delete", "", r#"{"path": "notes.txt"}"#),
    ("shell.exec", "", r#"{"command": "ls"}"#),
];

/// Every agent of the bundle, and one that it does not know.
const AGENTS: [&str; 5] = ["support-agent", "billing-agent", "research-agent", "ops-agent", "unknown-agent"];

fn sample() -> Bundle {
    bench::load(&root().join("policies"), "the sample bundle")
}

#[test]
fn the_matrix_is_as_reviewed() {
    bench::run(|| async {
        let bench = Bench::of(sample()).await;
        let mut text = String::from(
            "What the sample bundle decides, tool by agent.\n\
             A allowed, D denied, F failed, with the code; `.` is denied no_permit: nothing permits it.\n\
             Written by tests/tests/sample_bundle.rs; to accept a change, run it with TOLLGATE_REVIEW=write.\n",
        );
        for workspace in ["acme/support-prod", "acme/sandbox"] {
            for attended in [false, true] {
                matrix(&bench, workspace, attended, &mut text).await;
            }
        }
        let difference = review::compare(&root().join("tests/cases/sample-matrix.txt"), &text);
        assert!(difference.is_empty(), "the matrix differs from the reviewed one:\n{difference}");
    });
}

async fn matrix(bench: &Bench, workspace: &str, attended: bool, text: &mut String) {
    let situation = if attended { "for lena@acme.example, with an approval from a trusted caller" } else { "for nobody" };
    write!(text, "\n{workspace}, {situation}\n\n{:<30}", "").unwrap();
    for agent in AGENTS {
        write!(text, "{agent:<25}").unwrap();
    }
    for (row, (tool, variant, arguments)) in TOOLS.iter().enumerate() {
        let line = text.trim_end().len();
        text.truncate(line);
        write!(text, "\n{:<30}", format!("{tool} {variant}")).unwrap();
        for agent in AGENTS {
            let mut call = CallText::new(agent, tool);
            workspace.clone_into(&mut call.workspace);
            if attended {
                call.on_behalf_of = Some("lena@acme.example".to_owned());
                call.claims.approval = Some(ApprovalText { approver: "omar@acme.example".to_owned(), minutes_ago: 5 });
                call.trust_claims = true;
            }
            let id = format!("{row}-{attended}");
            let answer = bench.ask(call.call(&id, arguments), call.trust_claims).await.short();
            let shown = if answer == "D no_permit" { "." } else { &answer };
            write!(text, "{shown:<25}").unwrap();
        }
    }
    let line = text.trim_end().len();
    text.truncate(line);
    text.push('\n');
}

#[test]
fn the_matrix_has_every_tool_of_the_catalogue() {
    let bundle = sample();
    let declared: BTreeSet<_> = bundle.catalogue.tools.keys().map(|tool| tool.as_str().to_owned()).collect();
    let shown: BTreeSet<_> = TOOLS.iter().map(|(tool, _, _)| (*tool).to_owned()).collect();
    assert_eq!(declared, shown);
}

/// What the bundle's README promises, and the demo does.
#[test]
fn p03_the_refund_limit_is_one_number_and_an_edit_of_it_decides_the_next_attempt() {
    bench::run(|| async {
        let directory = tempfile::tempdir().unwrap();
        copy(&root().join("policies"), directory.path());
        let bench = Bench::of(sample()).await;
        let call = CallText::new("support-agent", "payments.refund");
        let refund = || call.call("refund-1", r#"{"amount": 40.00, "currency": "EUR", "order": "o-1001"}"#);

        let first = bench.ask(refund(), false).await;
        assert!(matches!(first.told, Ok(Recorded::Allowed(_))), "{}", first.in_full());

        let file = directory.path().join("hooks/payments-limit/refunds.cedar");
        let policy = fs::read_to_string(&file).unwrap();
        assert_eq!(policy.matches(r#"decimal("100.00")"#).count(), 1, "the limit is one number");
        fs::write(&file, policy.replace(r#"decimal("100.00")"#, r#"decimal("25.00")"#)).unwrap();
        bench.activate(bench::load(directory.path(), "the edited bundle")).await;

        let second = bench.ask(refund(), false).await;
        assert_eq!(second.short(), "D payment_over_limit");
        let (first, second) = (first.told.unwrap(), second.told.unwrap());
        assert_eq!((first.decided().attempt, second.decided().attempt), (1, 2));
        assert!(second.decided().generation.number > first.decided().generation.number);
    });
}
