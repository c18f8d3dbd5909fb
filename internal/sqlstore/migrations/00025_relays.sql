-- Relays, which connect closed networks to the servers. The words are those of 00001.

-- +goose Up

-- One row for each relay that may join or has joined. A relay that is removed has none.
CREATE TABLE relays (
    id         TEXT COLLATE BINARY NOT NULL PRIMARY KEY, -- also that of its token
    name       TEXT NOT NULL,
    areas      TEXT NOT NULL,   -- JSON: cloud areas of the hosts behind it
    state      TEXT NOT NULL,   -- invited, active
    digest     BYTEA NOT NULL,  -- SHA-256 of the secret of its token
    created    BIGINT NOT NULL,
    expires    BIGINT NOT NULL, -- its token
    created_by TEXT NOT NULL,
    serial     TEXT NOT NULL,   -- of its newest certificate
    previous   TEXT NOT NULL,   -- of the one before
    not_after  BIGINT NOT NULL,
    agents     TEXT NOT NULL,   -- where agents reach it, as host:port or :port
    api        TEXT NOT NULL,   -- where hosts enrol through it
    server     TEXT NOT NULL,   -- id of the server that it was connected to last
    hosts      BIGINT NOT NULL, -- whose connections it carried then
    seen       BIGINT NOT NULL  -- by the clock of the database; 0: never
);

-- Where relays reach a server; '': it accepts none.
ALTER TABLE servers ADD COLUMN relay_address TEXT NOT NULL DEFAULT '';
