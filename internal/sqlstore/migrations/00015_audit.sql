-- What an audit row says beyond the act: where the request came from, the accounts, the hosts and the definitions, and what became of it. The words are
-- those of 00001.

-- +goose Up

-- The rule by which the row is hashed. Rows of earlier versions have rule 1, which does not cover the columns below.
ALTER TABLE audit ADD COLUMN rule SMALLINT NOT NULL DEFAULT 1;
ALTER TABLE audit ADD COLUMN door TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN accounts TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN ref BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN content BYTEA NOT NULL DEFAULT '';

-- From the row of an act to the row that says what became of it.
CREATE INDEX audit_by_ref ON audit (ref) WHERE ref > 0;

-- Lists of hosts, contents of rows, and definitions that no task uses any more, by the SHA-256 of their plain bytes. packed: the body is compressed.
CREATE TABLE audit_texts (
    digest BYTEA NOT NULL PRIMARY KEY,
    packed BOOLEAN NOT NULL,
    body   BYTEA NOT NULL
);

-- How many attempts of a task have no verdict. -1: a task of an earlier version, whose verdicts get their row when it is removed.
ALTER TABLE tasks ADD COLUMN unsettled INTEGER NOT NULL DEFAULT -1;

-- The newest row that each live export has delivered.
CREATE TABLE audit_exports (
    name    TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    seq     BIGINT NOT NULL,
    hash    BYTEA NOT NULL,
    changed BIGINT NOT NULL
) WITHOUT ROWID;
