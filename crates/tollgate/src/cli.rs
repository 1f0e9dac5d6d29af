//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{
    config::{Overrides, Span},
    exit,
    run_path::RunPath,
};

/// The gate between an AI agent and its tools: asked before each physical attempt of a tool call, it judges
/// the call by ordered policy, writes the decision to a durable journal, and only then answers.
#[derive(Debug, Parser)]
#[command(version, after_long_help = exit::HELP, subcommand_required = true, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve as a sidecar until SIGTERM or SIGINT.
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(Serve),
    /// Ask a running sidecar about one tool call.
    #[command(after_long_help = EVALUATE_EXAMPLES)]
    Evaluate(Box<Evaluate>),
    /// Tell a running sidecar how an allowed tool call ended.
    Complete(Complete),
    /// Work with policy bundles.
    #[command(subcommand)]
    Policy(Policy),
    /// Read the journal.
    #[command(subcommand)]
    Journal(Journal),
    /// See it all in one minute: a real sidecar, a sample bundle, an agent's run, its journal.
    #[command(after_long_help = DEMO_EXAMPLES)]
    Demo(Demo),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

const RUN_HELP: &str = "The run: TENANT/WORKSPACE/RUN/OWNER/RUN_ID, or with FLOW for RUN";

const SERVE_EXAMPLES: &str = "\
Examples:
  tollgate serve --policy-dir policies
  tollgate serve --config /etc/tollgate/tollgate.yaml
  TOLLGATE_LOG_FORMAT=json tollgate serve --data-listen unix:/run/tollgate/data.sock

Every key of the file, with its default and its unit, is in docs/reference/configuration.md.";

const EVALUATE_EXAMPLES: &str = "\
Examples:
  echo '{\"query\": \"refund policy\"}' | tollgate evaluate --run acme/support-prod/RUN/support-agent/run-1 \\
      --agent support-agent@7 --tool search.knowledge_base
  tollgate evaluate --run … --agent … --tool payments.refund --arguments refund.json --json

Exit codes: 0 ALLOW, 3 DENY, 4 FAILED, 1 there is no decision. Run the tool on 0 only.";

const DEMO_EXAMPLES: &str = "\
Examples:
  tollgate demo
  tollgate demo --keep --directory /tmp/tollgate-demo";

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

/// How to reach a running sidecar.
#[derive(Debug, Args)]
pub(crate) struct DataAddress {
    /// The sidecar's data door: http://HOST:PORT or unix:PATH.
    #[arg(long, env = "TOLLGATE_ADDRESS", default_value = "http://127.0.0.1:7433")]
    pub(crate) address: String,
}

#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    #[command(flatten)]
    pub(crate) address: DataAddress,
    #[arg(long, help = RUN_HELP)]
    pub(crate) run: RunPath,
    /// The agent: ID@REVISION.
    #[arg(long, value_parser = agent)]
    pub(crate) agent: (String, String),
    /// The canonical tool id.
    #[arg(long)]
    pub(crate) tool: String,
    /// The tool's provider.
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// The provider's own name for the tool.
    #[arg(long)]
    pub(crate) external_name: Option<String>,
    /// Whom the agent acts for: KIND:ID, such as user:alice.
    #[arg(long, value_parser = principal)]
    pub(crate) principal: Option<(String, String)>,
    /// The file with the arguments, one JSON object; - reads standard input. Never on the command line, where
    /// other users of the machine could read them.
    #[arg(long, default_value = "-")]
    pub(crate) arguments: PathBuf,
    /// The logical call's id; derived when absent.
    #[arg(long)]
    pub(crate) tool_call: Option<String>,
    /// Sets apart two intended calls with equal arguments, where the logical call's id is derived.
    #[arg(long)]
    pub(crate) call_key: Option<String>,
    /// This attempt's id; a fresh one when absent.
    #[arg(long)]
    pub(crate) invocation: Option<String>,
    /// How long the decision may take, such as 2s.
    #[arg(long, default_value = "10s")]
    pub(crate) timeout: Span,
    /// Print the answer as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportedOutcome {
    /// The tool returned.
    Succeeded,
    /// The tool returned an error as its answer.
    ToolError,
    /// The tool threw.
    Failed,
    /// The tool was cancelled.
    Cancelled,
}

#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[command(flatten)]
    pub(crate) address: DataAddress,
    #[arg(long, help = RUN_HELP)]
    pub(crate) run: RunPath,
    /// The attempt, as evaluate answered it.
    #[arg(long)]
    pub(crate) invocation: String,
    /// What became of the tool.
    #[arg(long)]
    pub(crate) outcome: ReportedOutcome,
    /// The exception's type; required with --outcome failed.
    #[arg(long, required_if_eq("outcome", "failed"))]
    pub(crate) error_type: Option<String>,
    /// The exception's message; recorded.
    #[arg(long)]
    pub(crate) error_message: Option<String>,
    /// Print the answer as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Find everything that is wrong with a bundle, at once.
    Check {
        /// The bundle's directory.
        directory: PathBuf,
        /// How to print findings.
        #[arg(long, value_enum, default_value_t = CheckFormat::Human)]
        format: CheckFormat,
    },
    /// Show which generation decides on a running sidecar, and how its source stands.
    Status {
        #[command(flatten)]
        address: ReadAddress,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// As a compiler would.
    Human,
    /// One JSON object.
    Json,
}

/// How to reach a running sidecar's read door.
#[derive(Debug, Args)]
pub(crate) struct ReadAddress {
    /// The sidecar's read door: unix:PATH or http://HOST:PORT.
    #[arg(long, env = "TOLLGATE_READ_ADDRESS", default_value = "unix:.tollgate/read.sock")]
    pub(crate) address: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Journal {
    /// Show a run as a timeline.
    Show {
        #[command(flatten)]
        address: ReadAddress,
        #[arg(help = RUN_HELP)]
        run: RunPath,
        /// Only facts of this tool.
        #[arg(long)]
        tool: Option<String>,
        /// Only decisions that came to this.
        #[arg(long, value_enum)]
        decision: Option<DecisionFilter>,
        /// Print one JSON object a line instead.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionFilter {
    /// ALLOW.
    Allow,
    /// DENY.
    Deny,
    /// FAILED.
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where to keep the journal and the bundle; a temporary directory when absent.
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
    /// Go on serving after the run, until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
}

fn agent(text: &str) -> Result<(String, String), String> {
    pair(text, '@').ok_or_else(|| "write ID@REVISION".to_owned())
}

fn principal(text: &str) -> Result<(String, String), String> {
    pair(text, ':').ok_or_else(|| "write KIND:ID, such as user:alice".to_owned())
}

fn pair(text: &str, separator: char) -> Option<(String, String)> {
    let (left, right) = text.split_once(separator)?;
    (!left.is_empty() && !right.is_empty()).then(|| (left.to_owned(), right.to_owned()))
}
