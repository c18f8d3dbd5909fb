-- Which older programs can use a record, so that servers can be upgraded one after the other. The words are those of 00001.

-- +goose Up

-- A program that knows the schema with the number compatible_from can use a record whose schema has the number compatible_at. A
-- migration that only adds to the schema sets compatible_at to its own number. One that older programs do not understand sets
-- both.
INSERT INTO counters (name, value) VALUES ('compatible_at', 29), ('compatible_from', 29);
