-- Configuration files of businesses. The words are those of 00001.

-- +goose Up

INSERT INTO counters (name, value) VALUES ('config_template', 0), ('config_version', 0), ('config_binding', 0),
    ('config_instance', 0), ('config_snapshot', 0);

-- Templates in topology documents are not here. Their ids are skipped.
CREATE TABLE config_templates (
    biz            BIGINT NOT NULL,
    id             BIGINT NOT NULL,
    name           TEXT COLLATE BINARY NOT NULL,
    file_name      TEXT NOT NULL,
    path           TEXT NOT NULL,
    owner          TEXT NOT NULL,
    grp            TEXT NOT NULL,
    filemode       TEXT NOT NULL,
    line_separator TEXT NOT NULL,
    created        BIGINT NOT NULL,
    created_by     TEXT NOT NULL,
    updated        BIGINT NOT NULL,
    updated_by     TEXT NOT NULL,
    PRIMARY KEY (biz, id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX config_templates_by_name ON config_templates (biz, name);

CREATE TABLE config_versions (
    id          BIGINT NOT NULL PRIMARY KEY,
    biz         BIGINT NOT NULL,
    template    BIGINT NOT NULL,
    description TEXT NOT NULL,
    draft       BOOLEAN NOT NULL,
    active      BOOLEAN NOT NULL,
    file_format TEXT,
    size        BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    updated     BIGINT NOT NULL,
    updated_by  TEXT NOT NULL,
    content     BYTEA NOT NULL
);

CREATE INDEX config_versions_by_template ON config_versions (biz, template, id);

CREATE TABLE config_bindings (
    id         BIGINT NOT NULL PRIMARY KEY,
    biz        BIGINT NOT NULL,
    template   BIGINT NOT NULL,
    kind       TEXT COLLATE BINARY NOT NULL,
    object     BIGINT NOT NULL,
    created    BIGINT NOT NULL,
    created_by TEXT NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX config_bindings_by_template ON config_bindings (biz, template, kind, object);

CREATE INDEX config_bindings_by_object ON config_bindings (biz, kind, object);

-- Files that were rendered: those of many process instances are often equal, so each content is there once.
CREATE TABLE config_texts (
    biz  BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    size BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (biz, hash)
);

CREATE TABLE config_instances (
    id         BIGINT NOT NULL PRIMARY KEY,
    biz        BIGINT NOT NULL,
    template   BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    process    BIGINT NOT NULL,
    inst       BIGINT NOT NULL,
    name       TEXT NOT NULL,
    path       TEXT NOT NULL,
    hash       BYTEA NOT NULL,
    latest     BOOLEAN NOT NULL,
    released   BOOLEAN NOT NULL,
    created    BIGINT NOT NULL,
    created_by TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX config_instances_by_process ON config_instances (biz, process, inst, template, id);

CREATE INDEX config_instances_by_hash ON config_instances (biz, hash);

CREATE INDEX config_instances_by_template ON config_instances (biz, template, released);

-- What hosts had in place of a released file when it was compared: the newest for each.
CREATE TABLE config_snapshots (
    instance BIGINT NOT NULL PRIMARY KEY,
    id       BIGINT NOT NULL,
    biz      BIGINT NOT NULL,
    job      BIGINT NOT NULL,
    hash     BYTEA NOT NULL,
    created  BIGINT NOT NULL,
    updated  BIGINT NOT NULL,
    body     BYTEA NOT NULL
);

-- Jobs on configuration files: 'generate', 'release' or 'diff'. '' is a job on processes.
ALTER TABLE jobs ADD COLUMN work TEXT NOT NULL DEFAULT '';

-- JSON: which files a job is about.
ALTER TABLE jobs ADD COLUMN choice TEXT NOT NULL DEFAULT '';

-- What tasks of such jobs have made: JSON for the door.
CREATE TABLE job_results (
    job  BIGINT NOT NULL,
    id   BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;

UPDATE counters SET value = 35 WHERE name = 'compatible_at';
