-- The account that an operation may run as. The words are those of 00001.

-- +goose Up

-- The account that the caller has a right to; '' means every account, as for all operations of earlier versions.
ALTER TABLE items ADD COLUMN account TEXT NOT NULL DEFAULT '';
