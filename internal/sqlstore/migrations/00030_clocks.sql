-- How far the clocks of servers are from that of the database. The words are those of 00001.

-- +goose Up

-- Milliseconds that the clock of the server is ahead; 0: the difference is small.
ALTER TABLE servers ADD COLUMN ahead BIGINT NOT NULL DEFAULT 0;

UPDATE counters SET value = 30 WHERE name = 'compatible_at';
