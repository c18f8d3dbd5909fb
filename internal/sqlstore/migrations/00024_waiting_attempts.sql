-- Attempts that wait for their hosts. Where several servers share the record, an attempt is recorded as dispatched only if
-- none waits on its host, see record.NewTask.InOrder. The words are those of 00001.

-- +goose Up

CREATE INDEX IF NOT EXISTS attempts_waiting ON attempts (agent_id) WHERE state = 1;
