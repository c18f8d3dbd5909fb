-- What is added to the numbers of tasks for agents that had newer ones of another record. The words are those of 00001.

-- +goose Up

CREATE TABLE host_generations (
    agent_id TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    base     BIGINT NOT NULL
) WITHOUT ROWID;
