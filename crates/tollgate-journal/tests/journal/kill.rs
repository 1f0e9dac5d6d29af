//! What was acknowledged before a `kill -9` is there after it.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use tollgate_domain::{Decision, Store};
use tollgate_journal::Recovery;

use crate::support::*;

const CHILD: &str = "TOLLGATE_JOURNAL_CHILD";

/// Appends from many tasks, and prints each acknowledged sequence, until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process for the test below, which starts it"]
async fn child_that_appends_until_it_is_killed() {
    let path = PathBuf::from(std::env::var(CHILD).expect("the test below says where"));
    let journal = Arc::new(open(&path).await.unwrap());
    let tasks = (0..16).map(|task| {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move {
            for n in 0_u64.. {
                let run = format!("run-{}", task % 4);
                let key = of(&format!("call-{task}-{n}"), &format!("invocation-{task}-{n}"), "mail.send");
                let decision = if n % 2 == 0 { Decision::Allow } else { Decision::Deny };
                let receipt = journal.append(judged(&crate::support::run(&run), &key, decision)).await.unwrap();
                // One write per line, so that a kill cannot mix two.
                let line = format!("ACK {run} {} {}\n", receipt.sequence, key.invocation);
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        })
    });
    futures_util::future::join_all(tasks).await;
}

#[tokio::test]
async fn b14_killed_under_load_everything_acknowledged_is_there_and_chains_hold() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    for round in 1..=3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_appends_until_it_is_killed", "--ignored", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        for line in lines {
            let line = line.unwrap();
            // The harness may have begun the line.
            let Some((_, ack)) = line.split_once("ACK ") else { continue };
            let mut words = ack.split(' ').map(str::to_owned);
            acknowledged.push((words.next().unwrap(), words.next().unwrap(), words.next().unwrap()));
            if acknowledged.len() == 400 * round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acknowledged.len() >= 400 * round, "the child was killed while it appended");

        let journal = open(&path).await.unwrap();
        assert!(matches!(journal.recovery(), Recovery::Recovered { .. }), "{:?}", journal.recovery());
        for name in ["run-0", "run-1", "run-2", "run-3"] {
            let facts = facts_of(&journal, &run(name)).await;
            for (_, sequence, id) in acknowledged.iter().filter(|(run, ..)| run == name) {
                let fact = &facts[sequence.parse::<usize>().unwrap() - 1];
                assert_eq!(fact.invocation.as_ref().unwrap().as_str(), id);
            }
        }
        journal.close().await;
        // Each round begins anew: a child takes the same ids.
        for suffix in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{suffix}", path.display())));
        }
    }
}
