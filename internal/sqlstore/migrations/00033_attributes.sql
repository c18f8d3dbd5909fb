-- Attributes of sets, modules and hosts that only templates use, such as a zone: JSON, or '' if there are none. The words are
-- those of 00001.

-- +goose Up

ALTER TABLE sets ADD COLUMN attributes TEXT NOT NULL DEFAULT '';
ALTER TABLE modules ADD COLUMN attributes TEXT NOT NULL DEFAULT '';
ALTER TABLE services ADD COLUMN host_attributes TEXT NOT NULL DEFAULT '';

UPDATE counters SET value = 33 WHERE name = 'compatible_at';
