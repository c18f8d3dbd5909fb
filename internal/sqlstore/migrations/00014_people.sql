-- People, second factors, groups, kinds of tokens, and the names of deleted users. The words are those of 00001.

-- +goose Up

-- What people get through the app that are no users here: 'rights' those of the app, 'nothing', and '' as before while no admin has decided.
ALTER TABLE apps ADD COLUMN unknown_users TEXT NOT NULL DEFAULT '';
ALTER TABLE apps ADD COLUMN disabled BOOLEAN NOT NULL DEFAULT FALSE;
-- The users that were shown the secrets, as JSON in the order of secrets.
ALTER TABLE apps ADD COLUMN known_by TEXT NOT NULL DEFAULT '[]';

-- JSON, with the secret of the codes as it is: a code cannot be checked with a digest.
ALTER TABLE users ADD COLUMN second_factor TEXT NOT NULL DEFAULT '';

-- Where a token is accepted; '' is a token of earlier versions, which is accepted alone and through apps.
ALTER TABLE user_tokens ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE user_tokens ADD COLUMN for_app TEXT NOT NULL DEFAULT '';
-- The groups that the login provider named, as JSON.
ALTER TABLE user_tokens ADD COLUMN member_of TEXT NOT NULL DEFAULT '[]';

-- Grants for the members of groups at the login provider.
CREATE TABLE grant_groups (
    name   TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    grants TEXT NOT NULL
) WITHOUT ROWID;

-- A deleted user gets nothing, and its name is not given to another person by mistake.
CREATE TABLE deleted_users (
    name TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    at   BIGINT NOT NULL
) WITHOUT ROWID;
