-- An idempotency key belongs to one user of an app. The words are those of 00001.

-- +goose Up

-- Before, a key belonged to the app, so one user got the task of another. The keys that are valid go to their users.
CREATE TABLE idempotency_keys (
    app          TEXT COLLATE BINARY NOT NULL,
    caller       TEXT COLLATE BINARY NOT NULL,
    idem_key     TEXT COLLATE BINARY NOT NULL,
    task_seq     BIGINT NOT NULL,
    request_hash BYTEA NOT NULL,
    PRIMARY KEY (app, caller, idem_key)
) WITHOUT ROWID;

INSERT INTO idempotency_keys (app, caller, idem_key, task_seq, request_hash)
    SELECT i.app, t.caller, i.idem_key, i.task_seq, i.request_hash FROM idempotency i JOIN tasks t ON t.seq = i.task_seq;

DROP TABLE idempotency;

ALTER TABLE idempotency_keys RENAME TO idempotency;

CREATE INDEX idempotency_by_task ON idempotency (task_seq);
