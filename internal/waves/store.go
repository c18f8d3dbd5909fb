package waves

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Store is the record of jobs, durable when a call returns.
type Store interface {
	// CreateJob records a job with its tasks and draws their ids; both are filled in.
	CreateJob(ctx context.Context, j *record.Job, tasks []record.JobTask) error

	// Job reads one of a business. ErrNotFound for an unknown or foreign one.
	Job(ctx context.Context, biz int, id int64) (record.Job, error)

	// Jobs lists jobs of a business, newest first; total is how many fit.
	Jobs(ctx context.Context, f record.JobFilter) (total int, jobs []record.Job, err error)

	// Tasks lists the tasks of a job by id; total is how many fit, and counts are those of the whole job.
	Tasks(ctx context.Context, f record.JobTaskFilter) (record.JobTaskPage, error)

	// OpenJobs lists jobs of all businesses that are not final, oldest first.
	OpenJobs(ctx context.Context) ([]record.Job, error)

	// SaveTasks writes state, reason, code, message, round, operation and times of tasks, and those of the job when
	// j is not nil, in one transaction. Tasks that are in a newer round by now are left as they are.
	SaveTasks(ctx context.Context, j *record.Job, tasks []record.JobTask) error

	// Reopen is SaveTasks for a retry, with its audit row. ErrConflict when the job is not final: somebody else was
	// faster, and nothing is changed.
	Reopen(ctx context.Context, j *record.Job, tasks []record.JobTask, audit gozzard.AuditRow) error

	// PruneJobs removes at most limit final jobs that ended before a time, with their tasks.
	PruneJobs(ctx context.Context, before time.Time, limit int) (int, error)

	// HasJobs tells whether a business ever had a job.
	HasJobs(ctx context.Context, biz int) (bool, error)
}
