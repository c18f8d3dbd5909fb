-- What a host had before the definition that an attempt brought to the record. The words are those of 00001.

-- +goose Up

-- The attempt that brought the present definition; 0 in a record of an earlier version.
ALTER TABLE processes ADD COLUMN offer_task BIGINT NOT NULL DEFAULT 0;
ALTER TABLE processes ADD COLUMN offer_idx INTEGER NOT NULL DEFAULT 0;
-- What the host had before it: 0 is not known, 1 is nothing, 2 is the definition in the columns below.
ALTER TABLE processes ADD COLUMN former SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE processes ADD COLUMN former_labels TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN former_spec BYTEA;

CREATE INDEX processes_by_former ON processes (former_spec) WHERE former_spec IS NOT NULL;
