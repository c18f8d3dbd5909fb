-- The traces of tasks and jobs. The words are those of 00001.

-- +goose Up

-- W3C Trace Context: a traceparent and, after a space, a tracestate; '' for what is not traced. The verdict of a task may be
-- recorded by another server than the one that accepted it, and a job sends its operations long after its request.
ALTER TABLE tasks ADD COLUMN trace TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN trace TEXT NOT NULL DEFAULT '';

UPDATE counters SET value = 41 WHERE name = 'compatible_at';
