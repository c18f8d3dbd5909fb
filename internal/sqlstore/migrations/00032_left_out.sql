-- What of the source of a business could not be taken over, and the ids of hosts in CMDB. The words are those of 00001.

-- +goose Up

-- JSON: a list of sentences. Nothing means that all was taken.
ALTER TABLE businesses ADD COLUMN left_out TEXT NOT NULL DEFAULT '';

-- 0 means that the id is not known.
ALTER TABLE services ADD COLUMN host_id BIGINT NOT NULL DEFAULT 0;

UPDATE counters SET value = 32 WHERE name = 'compatible_at';
