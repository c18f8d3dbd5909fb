-- When the record was last marked as restored, so that one command prepares it for all servers. The words are those of 00001.

-- +goose Up

-- In milliseconds; 0: never. A server that has seen an earlier mark knows that the record was set back on purpose.
INSERT INTO counters (name, value) VALUES ('restore_mark', 0);

UPDATE counters SET value = 31 WHERE name = 'compatible_at';
