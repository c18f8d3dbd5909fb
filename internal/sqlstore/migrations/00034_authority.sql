-- The authority of the servers of an installation, and which of them have its key. The words are those of 00001.

-- +goose Up

-- At most one row: certificates in PEM. A server without a key of these gets it from another server.
CREATE TABLE authority (
    one     BOOLEAN NOT NULL PRIMARY KEY,
    current TEXT NOT NULL,
    next    TEXT NOT NULL -- '': no rotation is under way
);

-- The pin of the newest authority of which a server has the key; '': not known.
ALTER TABLE servers ADD COLUMN authority TEXT NOT NULL DEFAULT '';

-- The public key of this run of a server, for which others seal keys; '': none.
ALTER TABLE servers ADD COLUMN seal TEXT NOT NULL DEFAULT '';

UPDATE counters SET value = 34 WHERE name = 'compatible_at';
