-- Who may ask. Secrets and tokens are SHA-256 digests of random texts, passwords argon2id hashes; sign_keys alone are secrets as they are, of the apps
-- that prove themselves by a signature. Lists are JSON: they are only ever read whole.

-- +goose Up

-- Above 0 once there have been accounts, so that an empty list is not taken for a first start.
INSERT INTO counters (name, value) VALUES ('accounts', 0);

CREATE TABLE apps (
    code                        TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    secrets                     TEXT NOT NULL,
    sign_keys                   TEXT NOT NULL,
    asserts_users               BOOLEAN NOT NULL,
    missing_op_type_means_start BOOLEAN NOT NULL,
    grants                      TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE users (
    name     TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    password TEXT NOT NULL,
    subject  TEXT NOT NULL,
    disabled BOOLEAN NOT NULL,
    grants   TEXT NOT NULL
) WITHOUT ROWID;

-- A token may be of somebody who is no user here: such come with accounts of older versions.
CREATE TABLE user_tokens (
    digest  BYTEA NOT NULL PRIMARY KEY,
    id      TEXT NOT NULL,
    owner   TEXT COLLATE BINARY NOT NULL,
    note    TEXT NOT NULL,
    session BOOLEAN NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL
) WITHOUT ROWID;

CREATE INDEX user_tokens_by_owner ON user_tokens (owner);
CREATE INDEX user_tokens_by_expiry ON user_tokens (expires) WHERE expires > 0;
