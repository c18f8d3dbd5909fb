-- Large contents of files that operations write on hosts. The words are those of 00001.

-- +goose Up

-- Each content once, however many hosts and tasks it is for. Agents ask for it in parts.
CREATE TABLE file_contents (
    hash       BYTEA NOT NULL PRIMARY KEY, -- SHA-256
    size       BIGINT NOT NULL,
    keep_until BIGINT NOT NULL, -- it is removed afterwards
    body       BYTEA NOT NULL
);

UPDATE counters SET value = 36 WHERE name = 'compatible_at';
