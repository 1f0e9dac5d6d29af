//! The whole way of a call, against the disk that it must wait for, a gate that does nothing, and over each door.

use std::{rc::Rc, time::Duration};

use super::{Way, main_bundle, of, variant};
use crate::{
    calls::Kind,
    contest::{self, Pace, Variant},
    disk::Disk,
    load,
    report::{Goal, Report},
    servers::{Door, Program, Server, directory},
};

pub(super) async fn against_the_disk(pace: Pace, report: &mut Report) {
    let server = Server::start(Program::Product, &main_bundle(), Kind::Read).await;
    let directory = directory();
    let disk = Rc::new(Disk::new(directory.path()));
    let slice = |length: Duration| {
        let disk = Rc::clone(&disk);
        Box::pin(async move { load::slice(&[], length, async |log, until| disk.write(log, until).await).await }) as _
    };
    let variants = [
        Variant { name: "2 KiB and fdatasync, one thread".to_owned(), slice: Box::new(slice) },
        variant("unary, 1, TCP", &server, Door::Tcp, Way::Unary, 1).await,
        variant("unary, 1, Unix socket", &server, Door::Unix, Way::Unary, 1).await,
    ];
    let rows = contest::run('b', pace, &variants).await;
    let above = |name| of(&rows, name).p50_us - rows[0].p50_us;
    let mut figure = report.figure('b', &rows);
    figure.claim("TCP: p50 above the disk's", Goal::AtMost(200.0), above("unary, 1, TCP"), " µs");
    figure.claim("Unix socket: p50 above the disk's", Goal::AtMost(150.0), above("unary, 1, Unix socket"), " µs");
    report.answers += server.check_facts().await;
}

pub(super) async fn against_an_echo(pace: Pace, report: &mut Report) {
    let bundle = main_bundle();
    let echo = Server::start(Program::Echo, &bundle, Kind::Read).await;
    let product = Server::start(Program::Product, &bundle, Kind::Read).await;
    let variants = [
        variant("unary, 64: echo", &echo, Door::Tcp, Way::Unary, 64).await,
        variant("unary, 64: the program", &product, Door::Tcp, Way::Unary, 64).await,
        variant("stream, 64: echo", &echo, Door::Tcp, Way::Stream, 64).await,
        variant("stream, 64: the program", &product, Door::Tcp, Way::Stream, 64).await,
    ];
    let rows = contest::run('c', pace, &variants).await;
    let ratio = |above: &str, below: &str| of(&rows, above).per_second / of(&rows, below).per_second;
    let mut figure = report.figure('c', &rows);
    let unary = ratio("unary, 64: the program", "unary, 64: echo");
    figure.claim("unary, 64: the program / echo", Goal::AtLeast(0.3), unary, "");
    let stream = ratio("stream, 64: the program", "stream, 64: echo");
    figure.claim("stream, 64: the program / echo", None, stream, "");
    let streamed = ratio("stream, 64: the program", "unary, 64: the program");
    figure.claim("the program, 64: stream / unary", Goal::AtLeast(1.5), streamed, "");
    report.answers += product.check_facts().await;
}

pub(super) async fn tcp_and_unix(pace: Pace, report: &mut Report) {
    let server = Server::start(Program::Product, &main_bundle(), Kind::Read).await;
    for callers in [1, 64] {
        let (tcp, unix) = (format!("unary, {callers}: TCP"), format!("unary, {callers}: Unix socket"));
        let variants = [
            variant(&tcp, &server, Door::Tcp, Way::Unary, callers).await,
            variant(&unix, &server, Door::Unix, Way::Unary, callers).await,
        ];
        let rows = contest::run('e', pace, &variants).await;
        let p50 = rows[1].p50_us / rows[0].p50_us;
        report.figure('e', &rows).claim(&format!("unary, {callers}: p50 of Unix socket / TCP"), None, p50, "");
    }
    report.answers += server.check_facts().await;
}
