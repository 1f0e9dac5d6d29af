-- The journal. docs/reference/journal-format.md explains every table.

PRAGMA application_id = 1416514380; -- 'TnKL'
PRAGMA user_version = 1;

-- One row per sequence of facts: the run of an agent or flow, or a run of the system.
-- A run of the system (kind 'bundle' or 'sidecar') has its name in owner, and the other texts empty.
CREATE TABLE histories (
    id        INTEGER PRIMARY KEY,
    kind      TEXT NOT NULL CHECK (kind IN ('RUN', 'FLOW', 'bundle', 'sidecar')),
    tenant    TEXT NOT NULL,
    workspace TEXT NOT NULL,
    owner     TEXT NOT NULL,
    run       TEXT NOT NULL,
    UNIQUE (run, owner, workspace, tenant, kind)
) STRICT;

-- The record. The projections below can be computed again from these two tables.
CREATE TABLE facts (
    position   INTEGER PRIMARY KEY,
    history    INTEGER NOT NULL REFERENCES histories (id),
    sequence   INTEGER NOT NULL CHECK (sequence > 0),
    kind       TEXT NOT NULL,
    tool_call  TEXT,
    invocation TEXT,
    tool       TEXT,
    attempt    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    previous   BLOB NOT NULL CHECK (length(previous) = 32),
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    body       BLOB NOT NULL,
    UNIQUE (history, sequence)
) STRICT;

CREATE TRIGGER facts_are_never_changed BEFORE UPDATE ON facts
BEGIN SELECT RAISE(ABORT, 'facts are append-only'); END;
CREATE TRIGGER facts_are_never_removed BEFORE DELETE ON facts
BEGIN SELECT RAISE(ABORT, 'facts are append-only'); END;
CREATE TRIGGER histories_are_never_changed BEFORE UPDATE ON histories
BEGIN SELECT RAISE(ABORT, 'histories are append-only'); END;
CREATE TRIGGER histories_are_never_removed BEFORE DELETE ON histories
BEGIN SELECT RAISE(ABORT, 'histories are append-only'); END;

-- Projections. A tool call and an invocation are known by the position of their first Started fact,
-- so that their own order is the order in which they began.
CREATE TABLE tool_calls (
    first     INTEGER PRIMARY KEY,
    history   INTEGER NOT NULL REFERENCES histories (id),
    tool_call TEXT NOT NULL,
    tool      TEXT NOT NULL,
    attempts  INTEGER NOT NULL,
    latest    INTEGER NOT NULL,
    UNIQUE (history, tool_call)
) STRICT;
CREATE INDEX tool_calls_in_order ON tool_calls (history, first);

CREATE TABLE invocations (
    started    INTEGER PRIMARY KEY,
    history    INTEGER NOT NULL REFERENCES histories (id),
    invocation TEXT NOT NULL,
    tool_call  INTEGER NOT NULL REFERENCES tool_calls (first),
    attempt    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    evaluated  INTEGER,
    terminal   INTEGER,
    UNIQUE (history, invocation)
) STRICT;
CREATE INDEX invocations_undecided ON invocations (started) WHERE state = 'started';

-- The position of each sidecar's last activation of each bundle.
CREATE TABLE activations (
    bundle   TEXT NOT NULL,
    sidecar  TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (bundle, sidecar)
) STRICT;

-- Numbers of generations and of their managed hooks.
CREATE TABLE generations (
    bundle   TEXT NOT NULL,
    number   INTEGER NOT NULL CHECK (number > 0),
    revision TEXT NOT NULL,
    digest   BLOB NOT NULL CHECK (length(digest) = 32),
    PRIMARY KEY (bundle, number)
) STRICT;
CREATE INDEX generations_of_a_revision ON generations (bundle, revision, number);

CREATE TABLE generation_hooks (
    bundle     TEXT NOT NULL,
    number     INTEGER NOT NULL,
    resource   TEXT NOT NULL,
    generation INTEGER NOT NULL CHECK (generation > 0),
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    PRIMARY KEY (bundle, resource, number),
    FOREIGN KEY (bundle, number) REFERENCES generations (bundle, number)
) STRICT;

-- What the store knows of itself: the identity key's id and check value, the sidecar's id.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- What is written to learn whether the store can write again.
CREATE TABLE probe (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    body BLOB NOT NULL
) STRICT;
INSERT INTO probe VALUES (1, x'');
