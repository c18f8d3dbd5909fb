-- How many bytes of new definitions apps brought in the last hours, for their quotas. The words are those of 00001.

-- +goose Up

CREATE TABLE definition_bytes (
    at    BIGINT NOT NULL,
    app   TEXT COLLATE BINARY NOT NULL,
    bytes BIGINT NOT NULL
);

CREATE INDEX definition_bytes_by_time ON definition_bytes (at);
