-- Lists of tasks, the newest first. A caller lists tasks of its own app only. The words are those of 00001.

-- +goose Up

CREATE INDEX IF NOT EXISTS tasks_by_app ON tasks (app, seq);
CREATE INDEX IF NOT EXISTS tasks_by_caller ON tasks (app, caller, seq);
