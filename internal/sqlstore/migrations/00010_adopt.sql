-- What a start does with a process that it finds running. The words are those of 00001.

-- +goose Up

-- Whether the process is supervised from then on. Operations of earlier versions did not ask for that.
ALTER TABLE items ADD COLUMN adopt BOOLEAN NOT NULL DEFAULT FALSE;
