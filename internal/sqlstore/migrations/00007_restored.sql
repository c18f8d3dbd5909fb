-- What a record that came out of a backup has to remember until somebody has looked at it. The words are those of 00001.

-- +goose Up

-- When the backup was taken, while nobody has confirmed the restore; else 0.
INSERT INTO counters (name, value) VALUES ('restored', 0);

-- When the backup was taken that a member came from, until it has been heard again: certificates that were given out later are not in the record.
ALTER TABLE enrol_agents ADD COLUMN restored BIGINT NOT NULL DEFAULT 0;
