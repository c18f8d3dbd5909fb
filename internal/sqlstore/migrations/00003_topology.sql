-- Businesses and jobs. The words are those of 00001; lists that are only ever read whole (cloud areas, configuration templates, the processes of a
-- service instance) are JSON.

-- +goose Up

CREATE TABLE businesses (
    biz       BIGINT NOT NULL PRIMARY KEY,
    version   BIGINT NOT NULL,
    source    TEXT NOT NULL,
    at        BIGINT NOT NULL,
    name      TEXT NOT NULL,
    clouds    TEXT NOT NULL,
    templates TEXT NOT NULL
) WITHOUT ROWID;

-- What each version changed, and who did. audit_seq is its row in audit.
CREATE TABLE business_versions (
    biz              BIGINT NOT NULL,
    version          BIGINT NOT NULL,
    at               BIGINT NOT NULL,
    source           TEXT NOT NULL,
    app              TEXT NOT NULL,
    caller           TEXT NOT NULL,
    asserted         BOOLEAN NOT NULL,
    audit_seq        BIGINT NOT NULL,
    put_sets         INTEGER NOT NULL,
    put_modules      INTEGER NOT NULL,
    put_services     INTEGER NOT NULL,
    put_numbers      INTEGER NOT NULL,
    dropped_sets     INTEGER NOT NULL,
    dropped_modules  INTEGER NOT NULL,
    dropped_services INTEGER NOT NULL,
    dropped_numbers  INTEGER NOT NULL,
    PRIMARY KEY (biz, version)
) WITHOUT ROWID;

-- A change that would leave a module without its set, or a service instance without its module, is refused by the keys between these.
CREATE TABLE sets (
    biz  BIGINT NOT NULL REFERENCES businesses (biz),
    id   BIGINT NOT NULL,
    name TEXT NOT NULL,
    env  SMALLINT NOT NULL,
    PRIMARY KEY (biz, id)
) WITHOUT ROWID;

CREATE TABLE modules (
    biz              BIGINT NOT NULL,
    id               BIGINT NOT NULL,
    set_id           BIGINT NOT NULL,
    name             TEXT NOT NULL,
    service_template BIGINT NOT NULL,
    PRIMARY KEY (biz, id),
    FOREIGN KEY (biz, set_id) REFERENCES sets (biz, id)
) WITHOUT ROWID;

CREATE INDEX modules_by_set ON modules (biz, set_id);

CREATE TABLE services (
    biz       BIGINT NOT NULL,
    id        BIGINT NOT NULL,
    module_id BIGINT NOT NULL,
    name      TEXT NOT NULL,
    cloud     BIGINT NOT NULL,
    ip        TEXT NOT NULL,
    ipv6      TEXT NOT NULL,
    agent_id  TEXT NOT NULL,
    processes TEXT NOT NULL,
    PRIMARY KEY (biz, id),
    FOREIGN KEY (biz, module_id) REFERENCES modules (biz, id)
) WITHOUT ROWID;

CREATE INDEX services_by_module ON services (biz, module_id);

-- Instance numbers by process. They outlive nothing but their process, so that a host keeps the numbers it was given.
CREATE TABLE numbers (
    biz       BIGINT NOT NULL,
    process   BIGINT NOT NULL,
    module_id BIGINT NOT NULL,
    alias     TEXT NOT NULL,
    host_num  BIGINT NOT NULL,
    per       BIGINT NOT NULL,
    instances BIGINT NOT NULL,
    PRIMARY KEY (biz, process)
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('job', 0), ('job_task', 0);

CREATE TABLE jobs (
    id          BIGINT NOT NULL PRIMARY KEY,
    biz         BIGINT NOT NULL,
    action      SMALLINT NOT NULL,
    app         TEXT NOT NULL,
    caller      TEXT COLLATE BINARY NOT NULL,
    asserted    BOOLEAN NOT NULL,
    expression  TEXT NOT NULL,
    granularity TEXT NOT NULL,
    state       TEXT COLLATE BINARY NOT NULL,
    reason      TEXT NOT NULL,
    message     TEXT NOT NULL,
    started     BIGINT NOT NULL,
    ended       BIGINT NOT NULL,
    request     BYTEA
) WITHOUT ROWID;

CREATE INDEX jobs_by_business ON jobs (biz, id);

-- Only what is under way.
CREATE INDEX jobs_open ON jobs (id) WHERE state IN ('pending', 'running');

CREATE INDEX jobs_by_end ON jobs (ended, id);

-- Businesses that ever had a job: jobs themselves are removed when they are old.
CREATE TABLE job_businesses (
    biz BIGINT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE job_tasks (
    job       BIGINT NOT NULL,
    id        BIGINT NOT NULL,
    state     TEXT COLLATE BINARY NOT NULL,
    set_id    BIGINT NOT NULL,
    module_id BIGINT NOT NULL,
    process   BIGINT NOT NULL,
    name      TEXT COLLATE BINARY NOT NULL,
    local_id  INTEGER NOT NULL,
    inst_id   BIGINT NOT NULL,
    namespace TEXT NOT NULL,
    key_name  TEXT NOT NULL,
    agent_id  TEXT NOT NULL,
    cloud     BIGINT NOT NULL,
    ip        TEXT NOT NULL,
    grp       TEXT NOT NULL,
    wave      INTEGER NOT NULL,
    priority  BIGINT NOT NULL,
    round     INTEGER NOT NULL,
    task_id   TEXT NOT NULL,
    reason    TEXT NOT NULL,
    code      TEXT NOT NULL,
    message   TEXT NOT NULL,
    started   BIGINT NOT NULL,
    ended     BIGINT NOT NULL,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;

CREATE INDEX job_tasks_by_state ON job_tasks (job, state);

-- What is large and never changes, apart from the tasks: those are written again with every step.
CREATE TABLE job_details (
    job       BIGINT NOT NULL,
    id        BIGINT NOT NULL,
    labels    TEXT NOT NULL,
    spec_hash BYTEA,
    info      BYTEA,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;

-- Definitions as they were when a job was created, each once. Apart from specs: they live and go with their job.
CREATE TABLE job_specs (
    job  BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (job, hash)
) WITHOUT ROWID;

-- Jobs that are gone for readers and whose tasks are still being removed, step by step.
CREATE TABLE job_garbage (
    job BIGINT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
