-- Quotas of an hour that several servers count together. The words are those of 00001.

-- +goose Up

-- full_at is when nothing of a quota is used any more, in microseconds of the clock of the database. An hour fills a quota.
CREATE TABLE quotas (
    name    TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    full_at BIGINT NOT NULL
) WITHOUT ROWID;
