//! Contests: variants that take turns in short slices, so that what disturbs one disturbs all, told by their medians.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde::Serialize;

use crate::load::Sample;

/// A slice while others took more than this share of all cores is tried again.
const FOREIGN_MAX: f64 = 0.25;
/// How often; then the quietest counts.
const TRIES: usize = 2;

/// How long everything is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
}

/// One side of a contest: its name, and how a slice of it is measured.
pub(crate) struct Variant<'a> {
    pub(crate) name: String,
    pub(crate) slice: Box<dyn Fn(Duration) -> LocalBoxFuture<'a, Sample> + 'a>,
}

/// What a variant showed: medians of its rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) figure: char,
    pub(crate) name: String,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Of the server, for one answer.
    pub(crate) cpu_us: f64,
    /// The share of all cores that others took, at most in any round.
    pub(crate) foreign: f64,
}

/// Measures all variants round by round.
pub(crate) async fn run(figure: char, pace: Pace, variants: &[Variant<'_>]) -> Vec<Row> {
    let mut samples = vec![Vec::new(); variants.len()];
    for round in 0..pace.rounds {
        eprint!("\r({figure}) round {} of {} ", round + 1, pace.rounds);
        for (variant, samples) in variants.iter().zip(&mut samples) {
            samples.push(quietest(pace.slice, variant).await);
        }
    }
    eprintln!();
    variants.iter().zip(&samples).map(|(variant, samples)| row(figure, &variant.name, samples)).collect()
}

async fn quietest(length: Duration, variant: &Variant<'_>) -> Sample {
    let mut best = (variant.slice)(length).await;
    for _ in 1..TRIES {
        if best.foreign <= FOREIGN_MAX {
            break;
        }
        let next = (variant.slice)(length).await;
        if next.foreign < best.foreign {
            best = next;
        }
    }
    best
}

fn row(figure: char, name: &str, samples: &[Sample]) -> Row {
    let median = |of: fn(&Sample) -> f64| median(samples.iter().map(of).collect());
    Row {
        figure,
        name: name.to_owned(),
        per_second: median(|sample| sample.per_second),
        p50_us: median(|sample| sample.p50_us),
        p99_us: median(|sample| sample.p99_us),
        cpu_us: median(|sample| sample.server_us),
        foreign: samples.iter().map(|sample| sample.foreign).fold(0.0, f64::max),
    }
}

/// The middle of some values; of an even number, the lower one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// The share of all cores that others took, at most in any row.
pub(crate) fn worst_foreign(rows: &[Row]) -> f64 {
    rows.iter().map(|row| row.foreign).fold(0.0, f64::max)
}
