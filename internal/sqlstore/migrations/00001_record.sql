-- The record. One text for SQLite and PostgreSQL: the words WITHOUT ROWID and COLLATE BINARY are SQLite's, postgres.go says what becomes of them.
-- Times are Unix milliseconds (0: none), sessions and journal positions are never above 2^63-1, states and actions are the numbers of package
-- gozzard, texts of agents are only kept inside JSON so that no byte of theirs can be refused.

-- +goose Up

-- One row, 'number', numbers tasks and audit rows. Who draws from it holds it until commit, so the order of numbers is the order of commits.
CREATE TABLE counters (
    name  TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('number', 0);

CREATE TABLE tasks (
    seq         BIGINT NOT NULL PRIMARY KEY,
    task_id     TEXT NOT NULL,
    app         TEXT NOT NULL,
    caller      TEXT NOT NULL,
    asserted    BOOLEAN NOT NULL,
    door        TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    targets     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX tasks_by_time ON tasks (accepted_at, seq);

-- What the attempts of a task have in common: a task for 20,000 hosts names its process once.
CREATE TABLE items (
    task_seq  BIGINT NOT NULL,
    item      INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    action    SMALLINT NOT NULL,
    labels    TEXT NOT NULL,
    spec_hash BYTEA,
    PRIMARY KEY (task_seq, item)
) WITHOUT ROWID;

CREATE TABLE attempts (
    task_seq   BIGINT NOT NULL,
    idx        INTEGER NOT NULL,
    item       INTEGER NOT NULL,
    op_id      TEXT NOT NULL,
    agent_id   TEXT COLLATE BINARY NOT NULL,
    cloud      BIGINT NOT NULL,
    ip         TEXT NOT NULL,
    result_key TEXT NOT NULL,
    state      SMALLINT NOT NULL,
    session    BIGINT NOT NULL,
    outcome    TEXT NOT NULL,
    deadline   BIGINT NOT NULL,
    expires    BIGINT NOT NULL,
    PRIMARY KEY (task_seq, idx)
) WITHOUT ROWID;

-- States below 4 are not final. This holds only what is under way and so does not grow with history.
CREATE INDEX attempts_open ON attempts (agent_id, task_seq) WHERE state < 4;

-- Definitions by the hash of their bytes. last_task is the newest task that named it.
CREATE TABLE specs (
    hash      BYTEA NOT NULL PRIMARY KEY,
    body      BYTEA NOT NULL,
    last_task BIGINT NOT NULL
);

CREATE TABLE idempotency (
    app          TEXT COLLATE BINARY NOT NULL,
    idem_key     TEXT COLLATE BINARY NOT NULL,
    task_seq     BIGINT NOT NULL,
    request_hash BYTEA NOT NULL,
    PRIMARY KEY (app, idem_key)
) WITHOUT ROWID;

CREATE INDEX idempotency_by_task ON idempotency (task_seq);

-- Tasks that are gone for readers and whose attempts are still being removed, step by step.
CREATE TABLE garbage (
    task_seq BIGINT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE audit (
    seq          BIGINT NOT NULL PRIMARY KEY,
    at           BIGINT NOT NULL,
    app          TEXT NOT NULL,
    caller       TEXT NOT NULL,
    asserted     BOOLEAN NOT NULL,
    act          TEXT NOT NULL,
    task_id      TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    targets      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE hosts (
    agent_id  TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    session   BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    info      TEXT NOT NULL
) WITHOUT ROWID;

-- Apart from hosts because it moves with every verdict. since is the session in which this journal was first seen, or seen rolled back.
CREATE TABLE host_journals (
    agent_id   TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    journal_id TEXT NOT NULL,
    lsn        BIGINT NOT NULL,
    since      BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE host_addrs (
    cloud    BIGINT NOT NULL,
    ip       TEXT COLLATE BINARY NOT NULL,
    agent_id TEXT COLLATE BINARY NOT NULL,
    PRIMARY KEY (cloud, ip, agent_id)
) WITHOUT ROWID;

CREATE INDEX host_addrs_by_agent ON host_addrs (agent_id);

CREATE TABLE processes (
    agent_id      TEXT COLLATE BINARY NOT NULL,
    namespace     TEXT COLLATE BINARY NOT NULL,
    name          TEXT COLLATE BINARY NOT NULL,
    labels        TEXT NOT NULL,
    spec_hash     BYTEA,
    hosted        BOOLEAN NOT NULL,
    wanted        SMALLINT NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, namespace, name)
) WITHOUT ROWID;

CREATE INDEX processes_by_spec ON processes (spec_hash);

CREATE TABLE process_groups (
    agent_id    TEXT COLLATE BINARY NOT NULL,
    namespace   TEXT COLLATE BINARY NOT NULL,
    grp         TEXT COLLATE BINARY NOT NULL,
    cloud       BIGINT NOT NULL,
    ip          TEXT NOT NULL,
    cpu_limit   DOUBLE PRECISION NOT NULL,
    mem_limit   DOUBLE PRECISION NOT NULL,
    cpu_weight  BIGINT NOT NULL,
    mem_weight  BIGINT NOT NULL,
    labels      TEXT NOT NULL,
    supplier_id BIGINT NOT NULL,
    PRIMARY KEY (agent_id, namespace, grp)
) WITHOUT ROWID;
