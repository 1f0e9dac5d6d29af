//! What the documentation shows is what happens: its console sessions are typed in and their output compared.
//!
//! Of a page, in its order: a block opened by a language and a path, such as `yaml desk/bundle.yaml`, is
//! written to that file; a block opened by `console` is a session. In a session `$ ` begins a command, a `\`
//! at its end continues it, and what follows is what it prints. `…` stands for anything within a line, and
//! a line of it alone for any lines. `tollgate serve` goes on until the page ends, and `tollgate policy status`
//! is asked until it says what the page shows, since a bundle is taken in its own time.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tollgate_tests::{documents::copy, program, review::root};

/// How long the first lines of a sidecar may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often they are looked for.
const POLL: Duration = Duration::from_millis(20);
/// What a clone of the project runs, for which the tests have the program already.
const FROM_SOURCE: &str = "cargo run --release -- ";

#[test]
fn the_readme_shows_what_happens() {
    let page = Page::begin();
    copy(&root().join("policies"), &page.folder().join("policies"));
    page.play("README.md");
}

#[test]
fn getting_started_shows_what_happens() {
    Page::begin().play("docs/guide/getting-started.md");
}

#[test]
fn integrating_shows_what_happens() {
    let page = Page::begin();
    copy(&root().join("policies"), &page.folder().join("policies"));
    copy(&root().join("proto"), &page.folder().join("proto"));
    page.play("docs/guide/integrating.md");
}

/// A page's folder, and the sidecar that it left running.
struct Page {
    folder: tempfile::TempDir,
    serving: Vec<Child>,
}

struct Step {
    command: String,
    expected: Vec<String>,
}

impl Page {
    fn begin() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), serving: Vec::new() }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn play(mut self, page: &str) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut steps = 0;
        for (opening, block) in blocks(&text) {
            match opening.split_once(' ') {
                None if opening == "console" => {
                    for step in session(&block) {
                        self.take(page, &step);
                        steps += 1;
                    }
                }
                Some((_, path)) => {
                    let path = self.folder().join(path);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, block.join("\n") + "\n").unwrap();
                }
                None => {}
            }
        }
        assert!(steps > 0, "{page} shows nothing");
    }

    fn take(&mut self, page: &str, step: &Step) {
        let typed = step.command.replace(FROM_SOURCE, "tollgate ");
        let actual = if typed.starts_with("tollgate serve") {
            let log = self.serve(&typed);
            until(&step.expected, || lines(&fs::read_to_string(&log).unwrap()))
        } else if typed.starts_with("tollgate policy status") {
            until(&step.expected, || self.run(&typed))
        } else {
            self.run(&typed)
        };
        assert!(
            matches(&step.expected, &actual),
            "{page}: $ {}\n-- the page shows\n{}\n-- it printed\n{}",
            step.command,
            step.expected.join("\n"),
            actual.join("\n")
        );
    }

    fn run(&self, typed: &str) -> Vec<String> {
        let output = self.shell(&format!("{{ {typed}\n}} 2>&1")).stdin(Stdio::null()).output().unwrap();
        let printed = lines(&String::from_utf8(output.stdout).unwrap());
        assert!(output.status.success(), "$ {typed}\nends with {}\n{}", output.status, printed.join("\n"));
        printed
    }

    /// Starts a sidecar; answers where it logs.
    fn serve(&mut self, typed: &str) -> PathBuf {
        let log = self.folder().join("serve.log");
        let file = File::create(&log).unwrap();
        self.serving.push(self.shell(&format!("exec {typed}")).stdin(Stdio::null()).stderr(file).spawn().unwrap());
        log
    }

    /// A shell in the page's folder that finds the program, with its doors where no other test has them.
    fn shell(&self, script: &str) -> Command {
        let program = program::path().parent().unwrap().to_owned();
        // Made by `cargo xtask setup`.
        let python = root().join("target/tools/python/bin");
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([program, python].into_iter().chain(env::split_paths(&inherited))).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(self.folder()).env_clear().env("PATH", path);
        shell.env("TOLLGATE_DATA_LISTEN", "unix:.tollgate/data.sock").env("TOLLGATE_ADDRESS", "unix:.tollgate/data.sock");
        shell
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        for sidecar in &mut self.serving {
            drop(sidecar.kill());
            drop(sidecar.wait());
        }
    }
}

/// The fenced blocks of a page, each with its opening line.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(opening) = line.strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
            blocks.push((opening.to_owned(), block));
        }
    }
    blocks
}

fn session(block: &[String]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), expected: Vec::new() });
        } else {
            let step = steps.last_mut().expect("a session begins with a command");
            if continued {
                step.command.push('\n');
                step.command.push_str(line);
            } else {
                step.expected.push(line.clone());
            }
        }
        let in_command = continued || line.starts_with("$ ");
        continued = in_command && line.ends_with('\\');
    }
    for step in &mut steps {
        // Blank lines at the end part the commands for the eye.
        while step.expected.last().is_some_and(String::is_empty) {
            step.expected.pop();
        }
    }
    steps
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// What is printed once it is what the page shows, or in the end.
fn until(expected: &[String], mut look: impl FnMut() -> Vec<String>) -> Vec<String> {
    let begin = now();
    loop {
        let printed = look();
        if matches(expected, &printed) || begin.elapsed() > PATIENCE {
            return printed;
        }
        sleep(POLL);
    }
}

fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=actual.len()).any(|from| matches(rest, actual.get(from..).unwrap_or_default()))
        }
        Some((line, rest)) => {
            actual.split_first().is_some_and(|(first, others)| line_matches(line, first) && matches(rest, others))
        }
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let Some((before, after)) = expected.split_once('…') else { return expected == actual };
    let Some(rest) = actual.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| {
        let (_, rest) = rest.split_at(at);
        line_matches(after, rest)
    })
}

#[expect(clippy::disallowed_methods, reason = "a limit on how long a test waits")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn an_ellipsis_stands_for_anything_within_its_line_or_for_lines() {
    let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a…c|…|end"), &lines("abbc|x|y|end")));
    assert!(matches(&lines("…"), &[]));
    assert!(!matches(&lines("a…c"), &lines("abb")));
    assert!(!matches(&lines("a"), &lines("a|b")));
}
