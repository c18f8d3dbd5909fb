-- To which installation a record belongs, and the last transaction of each writer. The words are those of 00001.

-- +goose Up

-- At most one row: the number of the installation whose keys go with this record.
CREATE TABLE installation (
    one BOOLEAN NOT NULL PRIMARY KEY,
    id  TEXT NOT NULL
);

-- Every transaction of a writer leaves its mark. When the answer to a commit was lost, the mark says whether it was done.
CREATE TABLE marks (
    writer TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    mark   BIGINT NOT NULL
);
