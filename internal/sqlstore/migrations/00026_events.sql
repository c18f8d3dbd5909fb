-- Events of the fleet. The words are those of 00001.

-- +goose Up

-- 'event' is the number of the newest event; it follows the clock, in microseconds. 'event_source' numbers the sources.
-- 'events_removed' is the highest number of an event that was removed: all older ones may be missing.
INSERT INTO counters (name, value) VALUES ('event', 0), ('event_source', 0), ('events_removed', 0);

-- What events are about, and their kind: a process of a host, or with empty names the host itself. An event names its source
-- by number, so the row of an event is short, and events of a rare source are found by an index. A source without events is
-- removed.
CREATE TABLE event_sources (
    src       BIGINT NOT NULL PRIMARY KEY,
    agent_id  TEXT COLLATE BINARY NOT NULL,
    namespace TEXT COLLATE BINARY NOT NULL,
    name      TEXT COLLATE BINARY NOT NULL,
    cloud     BIGINT NOT NULL,
    ip        TEXT COLLATE BINARY NOT NULL,
    kind      TEXT COLLATE BINARY NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX event_sources_by_agent ON event_sources (agent_id, namespace, name, cloud, ip, kind);

CREATE TABLE events (
    id      BIGINT NOT NULL PRIMARY KEY,
    src     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    pid     BIGINT NOT NULL,
    code    BIGINT NOT NULL,
    known   BOOLEAN NOT NULL,
    core    BOOLEAN NOT NULL,
    signal  TEXT NOT NULL,
    message TEXT NOT NULL,
    task_id TEXT NOT NULL,
    app     TEXT NOT NULL,
    caller  TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX events_by_source ON events (src, id);

-- Up to which number the events of an agent are recorded: it repeats those that were not acknowledged.
CREATE TABLE event_marks (
    agent_id TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    seq      BIGINT NOT NULL
) WITHOUT ROWID;
