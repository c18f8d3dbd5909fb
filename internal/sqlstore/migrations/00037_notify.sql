-- Alerts to receivers outside. The words are those of 00001.

-- +goose Up

-- Settings have the secrets of receivers. No answer of the API has them.
CREATE TABLE notify_receivers (
    id       TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    name     TEXT COLLATE BINARY NOT NULL,
    kind     TEXT NOT NULL,
    shared   BOOLEAN NOT NULL,
    settings TEXT NOT NULL,
    app      TEXT NOT NULL,
    caller   TEXT NOT NULL,
    created  BIGINT NOT NULL
) WITHOUT ROWID;

CREATE TABLE notify_subscriptions (
    id      TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    body    TEXT NOT NULL,
    app     TEXT NOT NULL,
    caller  TEXT NOT NULL,
    created BIGINT NOT NULL
) WITHOUT ROWID;

-- How far the events and the audit were looked at.
CREATE TABLE notify_positions (
    name  TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) WITHOUT ROWID;

-- Alerts that fire, or whose end was not sent.
CREATE TABLE notify_alerts (
    sub         TEXT COLLATE BINARY NOT NULL,
    fingerprint TEXT COLLATE BINARY NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (sub, fingerprint)
) WITHOUT ROWID;

CREATE TABLE notify_lost (
    agent_id TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    since    BIGINT NOT NULL
) WITHOUT ROWID;

-- Messages that wait for their receivers, and those that could not be delivered.
CREATE TABLE notify_messages (
    id       BIGINT NOT NULL PRIMARY KEY,
    receiver TEXT COLLATE BINARY NOT NULL,
    sub      TEXT COLLATE BINARY NOT NULL,
    body     TEXT NOT NULL,
    created  BIGINT NOT NULL,
    tries    INTEGER NOT NULL,
    next_at  BIGINT NOT NULL,
    dead     BOOLEAN NOT NULL,
    error    TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX notify_messages_by_receiver ON notify_messages (receiver, dead, id);

INSERT INTO counters (name, value) VALUES ('notification', 0);

UPDATE counters SET value = 37 WHERE name = 'compatible_at';
