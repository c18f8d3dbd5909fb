-- From here on the server keeps checksums of the pages of an SQLite record in a file beside it. An older program would change pages without them, so it
-- must refuse the record: the number of this migration is all that it needs to do that.

-- +goose Up
INSERT INTO counters (name, value) VALUES ('page_sums', 1) ON CONFLICT (name) DO NOTHING;
