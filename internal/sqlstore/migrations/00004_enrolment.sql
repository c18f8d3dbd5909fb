-- Who is a member of the fleet, and what brings hosts in. The words are those of 00001; networks and addresses are JSON. Of a token only a digest is kept.

-- +goose Up

CREATE TABLE enrol_tokens (
    id         TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    digest     BYTEA NOT NULL,
    created    BIGINT NOT NULL,
    expires    BIGINT NOT NULL,
    uses       INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    cloud      BIGINT NOT NULL,
    nets       TEXT NOT NULL,
    approve    BOOLEAN NOT NULL,
    agent_id   TEXT NOT NULL,
    revoked    BOOLEAN NOT NULL,
    created_by TEXT NOT NULL
) WITHOUT ROWID;

-- Members are never deleted: the name of one that was removed must not be given to somebody else.
CREATE TABLE enrol_agents (
    agent_id  TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    cloud     BIGINT NOT NULL,
    ips       TEXT NOT NULL,
    machine   TEXT NOT NULL,
    hostname  TEXT NOT NULL,
    state     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    serial    TEXT NOT NULL,
    previous  TEXT NOT NULL,
    not_after BIGINT NOT NULL,
    enrolled  BIGINT NOT NULL,
    changed   BIGINT NOT NULL,
    token     TEXT NOT NULL
) WITHOUT ROWID;
