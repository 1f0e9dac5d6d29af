//! What was measured, as Markdown and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{
    contest::{Row, worst_foreign},
    machine,
};

/// Everything that a run of the bench has to say.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    machine: String,
    rows: Vec<Row>,
    claims: Vec<Claim>,
    /// What has no place in a table, such as what could not be measured.
    pub(crate) notes: Vec<String>,
    /// Answers that were counted against the journals of their servers.
    pub(crate) answers: u64,
}

/// One figure: what it should be, and what it is. Nothing fails where it does not hold.
#[derive(Debug, Serialize)]
struct Claim {
    figure: char,
    name: String,
    goal: Option<Goal>,
    measured: f64,
    unit: &'static str,
    /// The share of all cores that others took meanwhile.
    foreign: f64,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// One figure of a report, to claim something from.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    report: &'a mut Report,
    letter: char,
    foreign: f64,
}

impl Figure<'_> {
    /// Notes what was measured, and what it should be; without a goal it is only told.
    pub(crate) fn claim(&mut self, name: &str, goal: impl Into<Option<Goal>>, measured: f64, unit: &'static str) {
        let (figure, foreign) = (self.letter, self.foreign);
        self.report.claims.push(Claim { figure, name: name.to_owned(), goal: goal.into(), measured, unit, foreign });
    }
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { machine: machine::description(), ..Self::default() }
    }

    /// Takes the rows of a figure, for what is claimed from them.
    pub(crate) fn figure(&mut self, figure: char, rows: &[Row]) -> Figure<'_> {
        self.rows.extend_from_slice(rows);
        self.figure_beside(figure, worst_foreign(rows))
    }

    /// A figure that has no rows, measured while others took a share of all cores.
    pub(crate) fn figure_beside(&mut self, letter: char, foreign: f64) -> Figure<'_> {
        Figure { report: self, letter, foreign }
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{}. Foreign CPU is what others took of all cores, in the worst round.\n\n", self.machine);
        text += "| | what | answers/s | p50 µs | p99 µs | server CPU µs | foreign CPU |\n|---|---|---:|---:|---:|---:|---:|\n";
        for row in &self.rows {
            let Row { figure, name, per_second, p50_us, p99_us, cpu_us, foreign } = row;
            let cpu = if *cpu_us > 0.0 { format!("{cpu_us:.1}") } else { "–".to_owned() };
            let foreign = foreign * 100.0;
            writeln!(text, "| {figure} | {name} | {per_second:.0} | {p50_us:.0} | {p99_us:.0} | {cpu} | {foreign:.0} % |")
                .unwrap();
        }
        text += "\n| | figure | goal | measured | holds | foreign CPU |\n|---|---|---:|---:|---|---:|\n";
        for claim in &self.claims {
            let Claim { figure, name, measured, unit, foreign, .. } = claim;
            let foreign = foreign * 100.0;
            let (goal, holds) = match claim.goal {
                None => ("–".to_owned(), "–"),
                Some(Goal::AtLeast(goal)) => (format!("≥ {goal}"), if *measured >= goal { "yes" } else { "**no**" }),
                Some(Goal::AtMost(goal)) => (format!("≤ {goal}"), if *measured <= goal { "yes" } else { "**no**" }),
            };
            writeln!(text, "| {figure} | {name} | {goal} | {measured:.2}{unit} | {holds} | {foreign:.0} % |").unwrap();
        }
        writeln!(text, "\n{} answers were checked, and the journals have as many facts as they stand on.", self.answers).unwrap();
        for note in &self.notes {
            writeln!(text, "\n{note}").unwrap();
        }
        text
    }
}
