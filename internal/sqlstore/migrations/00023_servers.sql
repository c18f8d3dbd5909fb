-- The servers of an installation, the work that one of them does, and how often each kind of fact changed. The words are
-- those of 00001. Times of these tables are by the clock of the database: the clocks of servers may differ.

-- +goose Up

-- One row for each server. It writes its row every few seconds while it runs.
CREATE TABLE servers (
    id      TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL,
    url     TEXT NOT NULL,    -- of its API
    address TEXT NOT NULL,    -- for other servers; '': none
    agent_address TEXT NOT NULL, -- for agents; '': none
    version TEXT NOT NULL,    -- of its program
    started BIGINT NOT NULL,
    seen    BIGINT NOT NULL,
    agents  BIGINT NOT NULL,  -- that are connected to it
    drained BOOLEAN NOT NULL  -- it takes no agents, for maintenance
);

-- Work that exactly one server does. fence grows with every new holder, and is checked with everything that it records.
CREATE TABLE leases (
    name   TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    holder TEXT COLLATE BINARY NOT NULL, -- the id of a server; '': none
    fence  BIGINT NOT NULL,
    until  BIGINT NOT NULL
);

-- How often facts of a kind were changed. A server reads them again when the number is not the one that it knows.
CREATE TABLE versions (
    kind TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    n    BIGINT NOT NULL
);
