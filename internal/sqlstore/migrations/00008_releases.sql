-- Releases that were published, and their way to the hosts. The words are those of 00001; stages are JSON.

-- +goose Up

CREATE TABLE releases (
    version      TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    manifest     BYTEA NOT NULL,
    signature    BYTEA NOT NULL,
    published    BIGINT NOT NULL,
    published_by TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE rolls (
    id          BIGINT NOT NULL PRIMARY KEY,
    version     TEXT NOT NULL,
    stages      TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT NOT NULL,
    created     BIGINT NOT NULL,
    changed     BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    approved_by TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE roll_hosts (
    roll     BIGINT NOT NULL,
    place    BIGINT NOT NULL,
    agent_id TEXT COLLATE BINARY NOT NULL,
    stage    INTEGER NOT NULL,
    state    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    asked    BIGINT NOT NULL,
    PRIMARY KEY (roll, agent_id)
) WITHOUT ROWID;

-- The highest version of the protocol that a host has spoken in a session that was welcomed.
CREATE TABLE host_protocols (
    agent_id TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    protocol BIGINT NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('roll', 0);
