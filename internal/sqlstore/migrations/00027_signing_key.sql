-- The key with which the servers of an installation sign commands. The words are those of 00001.

-- +goose Up

-- At most one row: the public part of the newest key. A server with an older one gets the secret part from another server.
CREATE TABLE signing_key (
    one BOOLEAN NOT NULL PRIMARY KEY,
    key TEXT NOT NULL
);
