//! `docs/reference/configuration.md`: every key of the configuration, with its flag, its variable, its default and
//! its unit; and the proof that the file, the flags and the environment know the same keys.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory, FromArgMatches};
use serde_json::Value;

use crate::{
    cli::Cli,
    config::{Config, ListenerConfig, Overrides, Place},
};

const OPENING: &str = include_str!("configuration/opening.md");
const EXAMPLE: &str = include_str!("configuration/example.yaml");
const CLOSING: &str = include_str!("configuration/closing.md");
/// Where the listeners' keys are explained.
const SOURCE: &str = include_str!("../config/file.rs");

/// Flags of `serve` that no scalar key is behind: the file itself, and the places to listen.
const NOT_SCALAR: [&str; 3] = ["config", "data_listen", "read_listen"];

/// A scalar key of the file.
struct Key {
    path: String,
    default: Value,
}

impl Key {
    /// The name of its flag's argument in the program.
    fn argument(&self) -> String {
        self.path.replace('.', "_")
    }
}

#[test]
fn the_page_of_the_configuration_is_fresh() {
    let mut page = OPENING.to_owned();
    write!(page, "\n```yaml\n{EXAMPLE}```\n\n").unwrap();
    page.push_str("## Keys\n\n| key | flag | variable | default | unit | meaning |\n|---|---|---|---|---|---|\n");
    let flags = flags();
    for key in scalar_keys() {
        let flag = flag_of(&flags, &key.argument());
        page.push_str(&row(&format!("`{}`", key.path), flag));
    }
    page.push_str("\nThese have no scalar key:\n\n| flag | variable | default | unit | meaning |\n|---|---|---|---|---|\n");
    for argument in NOT_SCALAR {
        page.push_str(row("", flag_of(&flags, argument)).trim_start_matches("|  "));
    }
    page.push_str(CLOSING);
    page.push_str("\n| key | default | meaning |\n|---|---|---|\n");
    let fields = serde_json::to_value(ListenerConfig::at("unix:data.sock".parse::<Place>().unwrap())).unwrap();
    for (name, default) in in_order_of_the_source(&fields) {
        let default = if name == "listen" { "required".to_owned() } else { default_of_listener(&default) };
        writeln!(page, "| `{name}` | {default} | {} |", explanation(&name)).unwrap();
    }
    super::is_fresh("configuration.md", &page);
}

#[test]
fn every_scalar_key_has_its_flag_and_variable_and_every_flag_its_key() {
    let flags = flags();
    let keys = scalar_keys();
    for key in &keys {
        let flag = flag_of(&flags, &key.argument());
        let variable = flag.get_env().unwrap_or_else(|| panic!("{} has no variable", key.path)).to_str().unwrap();
        let long = flag.get_long().unwrap();
        assert_eq!(variable, format!("TOLLGATE_{}", long.replace('-', "_").to_uppercase()), "of {}", key.path);
    }
    let behind: Vec<_> = keys.iter().map(Key::argument).collect();
    for flag in &flags {
        let id = flag.get_id().as_str();
        assert!(NOT_SCALAR.contains(&id) || behind.iter().any(|key| key == id), "--{id} has no key in the file");
    }
}

#[test]
fn every_flag_changes_its_key_and_no_other() {
    for key in scalar_keys() {
        let flags = flags();
        let flag = flag_of(&flags, &key.argument());
        let written = format!("--{}={}", flag.get_long().unwrap(), sample(flag));
        let mut config = Config::default();
        overrides(&["tollgate", "serve", &written]).apply(&mut config);
        let (before, after) = (leaves_of(&Config::default()), leaves_of(&config));
        let changed: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before.default != after.default).collect();
        assert_eq!(changed.len(), 1, "{written} changes {} keys", changed.len());
        assert_eq!(changed[0].0.path, key.path, "{written}");
    }
}

#[test]
fn the_defaults_that_help_tells_are_the_ones_in_force() {
    let flags = flags();
    for key in scalar_keys().into_iter().filter(|key| !key.default.is_null()) {
        let (_, told) = help(flag_of(&flags, &key.argument()));
        assert_eq!(told, scalar(&key.default), "of {}", key.path);
    }
}

#[test]
fn the_example_of_the_page_is_a_configuration() {
    let config: Config = serde_saphyr::from_str(EXAMPLE).unwrap();
    assert_ne!(config, Config::default());
}

/// Every key that holds one value, in the order of the file's structures.
fn scalar_keys() -> Vec<Key> {
    leaves_of(&Config::default())
}

fn leaves_of(config: &Config) -> Vec<Key> {
    let mut keys = Vec::new();
    leaves("", &serde_json::to_value(config).unwrap(), &mut keys);
    keys.retain(|key| !key.path.starts_with("listeners."));
    keys.sort_by_key(|key| position_of(&key.argument()));
    keys
}

fn leaves(path: &str, value: &Value, keys: &mut Vec<Key>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, value, keys);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            keys.push(Key { path: path.to_owned(), default: value.clone() });
        }
    }
}

/// Where a flag stands in the help of `serve`, which has the order of the file.
fn position_of(argument: &str) -> usize {
    flags().iter().position(|flag| flag.get_id().as_str() == argument).unwrap_or(usize::MAX)
}

fn flags() -> Vec<Arg> {
    let cli = Cli::command();
    let serve = cli.get_subcommands().find(|command| command.get_name() == "serve").unwrap();
    serve.get_arguments().cloned().collect()
}

fn flag_of<'a>(flags: &'a [Arg], argument: &str) -> &'a Arg {
    flags.iter().find(|flag| flag.get_id().as_str() == argument).unwrap_or_else(|| panic!("{argument} has no flag"))
}

fn overrides(line: &[&str]) -> Overrides {
    let matches = Cli::command().try_get_matches_from(line).unwrap();
    Overrides::from_arg_matches(matches.subcommand().unwrap().1).unwrap()
}

fn row(key: &str, flag: &Arg) -> String {
    let (meaning, default) = help(flag);
    let (long, variable) = (flag.get_long().unwrap(), flag.get_env().unwrap().to_str().unwrap());
    let default = if default.is_empty() { "none".to_owned() } else { default };
    format!("| {key} | `--{long}` | `{variable}` | {default} | {} | {meaning} |\n", unit(flag).0)
}

/// What help says of a flag, and which default it tells.
fn help(flag: &Arg) -> (String, String) {
    let text = flag.get_help().unwrap().to_string();
    match text.split_once(" [default: ") {
        Some((meaning, default)) => (meaning.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (text, String::new()),
    }
}

/// The unit of a flag's value, and a value that is the default of no key.
fn unit(flag: &Arg) -> (&'static str, &'static str) {
    match flag.get_value_names().unwrap()[0].as_str() {
        "DIR" => ("directory", "elsewhere"),
        "FILE" => ("file", "elsewhere"),
        "ID" => ("id", "sidecar-9"),
        "URL" => ("`sqlite:PATH`", "sqlite:elsewhere.db"),
        "DURATION" => ("duration", "7s"),
        "COUNT" => ("count", "7"),
        "KIB" => ("KiB", "7"),
        "BOOL" => ("`true` or `false`", "false"),
        "DECISION" => ("`deny` or `allow`", "allow"),
        "PLACE" => ("places, separated by `,`", "unix:elsewhere.sock"),
        "ADDRESS" => ("`ADDRESS:PORT`", "127.0.0.1:9"),
        "FORMAT" => ("`text` or `json`", "json"),
        "LEVEL" => ("level or directives", "debug"),
        other => panic!("say here what the unit of {other} is"),
    }
}

fn sample(flag: &Arg) -> &'static str {
    unit(flag).1
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn default_of_listener(default: &Value) -> String {
    match default {
        Value::Array(values) if values.is_empty() => "empty".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => format!("`{default}`"),
    }
}

/// The members of a listener, in the order in which the structure declares them.
fn in_order_of_the_source(fields: &Value) -> Vec<(String, Value)> {
    let place = |name: &str| listener_source().find(&format!("pub(crate) {name}:")).unwrap();
    let mut fields: Vec<_> = fields.as_object().unwrap().clone().into_iter().collect();
    fields.sort_by_key(|(name, _)| place(name));
    fields
}

/// The comment of a listener's key.
fn explanation(name: &str) -> String {
    let before = listener_source().split(&format!("pub(crate) {name}:")).next().unwrap();
    let lines = before.lines().rev().skip_while(|line| !line.trim().starts_with("///"));
    let mut comment: Vec<_> = lines.map_while(|line| line.trim().strip_prefix("/// ")).collect();
    comment.reverse();
    comment.join(" ").trim_end_matches('.').to_owned()
}

fn listener_source() -> &'static str {
    SOURCE.split("pub(crate) struct ListenerConfig {").nth(1).unwrap().split("\n}").next().unwrap()
}
