//! The figures, one after the other.

mod against_cerbos;
mod journal;
mod life;
mod policies;
mod wire;

use std::{rc::Rc, time::Duration};

use tollgate_tests::trees::Tree;

use crate::{
    Options,
    bundles::{Reach, bundle},
    contest::{Row, Variant},
    load,
    report::Report,
    servers::{Door, Server},
};

/// Policies of the bundle that most figures are measured with; few can match.
const POLICIES: usize = 100;

/// How calls are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Unary,
    Stream,
}

/// Measures what is wanted.
pub(crate) async fn measure(options: &Options) -> Report {
    let mut report = Report::new();
    let pace = options.pace;
    let wanted = |figure| options.figures.contains(figure);
    if wanted('a') || wanted('h') {
        journal::measure(pace, &mut report).await;
    }
    if wanted('b') {
        wire::against_the_disk(pace, &mut report).await;
    }
    if wanted('c') {
        wire::against_an_echo(pace, &mut report).await;
    }
    if wanted('d') {
        policies::measure(pace, &mut report).await;
    }
    if wanted('e') {
        wire::tcp_and_unix(pace, &mut report).await;
    }
    if wanted('f') {
        life::swaps(pace, &mut report).await;
    }
    if wanted('g') {
        life::starts(pace, &mut report).await;
    }
    if wanted('i') {
        against_cerbos::measure(pace, &mut report, options.cerbos.as_deref()).await;
    }
    report
}

/// The bundle that most figures are measured with.
fn main_bundle() -> Tree {
    bundle(POLICIES, Reach::Elsewhere, 0)
}

/// Load on a server as a side of a contest, over connections that stay.
async fn variant<'a>(name: &str, server: &'a Server, door: Door, way: Way, callers: usize) -> Variant<'a> {
    let connections = Rc::new(server.connections(door, callers).await);
    let slice = move |length: Duration| {
        let connections = Rc::clone(&connections);
        let slice = async move {
            load::slice(&[server.pid()], length, async |log, until| match way {
                Way::Unary => load::unary(&connections, callers, &server.calls, log, until).await,
                Way::Stream => load::streamed(&connections, callers, &server.calls, log, until).await,
            })
            .await
        };
        Box::pin(slice) as _
    };
    Variant { name: name.to_owned(), slice: Box::new(slice) }
}

/// The row of a name.
fn of<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}
