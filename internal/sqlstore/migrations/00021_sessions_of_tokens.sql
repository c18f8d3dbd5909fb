-- Sessions of the console end with the token whose link opened them. The words are those of 00001.

-- +goose Up

-- The id of that token; '' for all other tokens.
ALTER TABLE user_tokens ADD COLUMN opened_by TEXT NOT NULL DEFAULT '';
