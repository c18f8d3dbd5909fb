-- Which authority each member has shown, and requests that wait for a second person. The words are those of 00001.

-- +goose Up

-- The pin of the authority that signed the certificate that a member showed last.
CREATE TABLE member_authorities (
    agent_id  TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    authority TEXT NOT NULL
) WITHOUT ROWID;

-- What a person asked for and another person has to approve. The act is JSON, and its digest covers everything that is approved.
CREATE TABLE requests (
    id       BIGINT NOT NULL PRIMARY KEY,
    kind     TEXT NOT NULL,
    what     TEXT NOT NULL,
    act      BYTEA NOT NULL,
    digest   TEXT NOT NULL,
    app      TEXT NOT NULL,
    person   TEXT NOT NULL,
    created  BIGINT NOT NULL,
    expires  BIGINT NOT NULL,
    state    TEXT NOT NULL,
    decided  BIGINT NOT NULL,
    decider  TEXT NOT NULL,
    result   TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('request', 0);
