-- +goose Up
-- The value of since for which the server's copy of the host's processes was laid down again: another one means that this is still to be done.
ALTER TABLE host_journals ADD COLUMN laid BIGINT NOT NULL DEFAULT 0;
UPDATE host_journals SET laid = since;
