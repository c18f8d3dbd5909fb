package waves

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Store stores jobs. A change is durable when its call returns.
type Store interface {
	// CreateJob stores a job with its tasks and sets their ids.
	CreateJob(ctx context.Context, j *record.Job, tasks []record.JobTask) error

	// Job returns a job of a business. The error is ErrNotFound for an unknown job and for one of another business.
	Job(ctx context.Context, biz int, id int64) (record.Job, error)

	// Jobs lists jobs of a business, newest first. total counts all that match the filter.
	Jobs(ctx context.Context, f record.JobFilter) (total int, jobs []record.Job, err error)

	// CountJobs counts jobs of a business by everything that a JobCount has. Start and Limit of the filter do not count.
	CountJobs(ctx context.Context, f record.JobFilter) ([]record.JobCount, error)

	// Tasks lists the tasks of a job by id. Its total counts all that match the filter, its counts are of the whole
	// job.
	Tasks(ctx context.Context, f record.JobTaskFilter) (record.JobTaskPage, error)

	// OpenJobs lists jobs of all businesses that are not final, oldest first.
	OpenJobs(ctx context.Context) ([]record.Job, error)

	// SaveTasks stores state, reason, code, message, round, operation and times of tasks, and those of the job if j is
	// not nil, in one transaction. It does not change tasks that are in a newer round by now.
	SaveTasks(ctx context.Context, j *record.Job, tasks []record.JobTask) error

	// Reopen is SaveTasks for a retry, with its audit row. It returns ErrConflict and changes nothing if the job is not
	// final: another caller was faster.
	Reopen(ctx context.Context, j *record.Job, tasks []record.JobTask, audit gozzard.AuditRow) error

	// StopJob records that the tasks of a round that have not begun are not to be done, with its audit row. It returns ErrConflict and
	// changes nothing if the job is final.
	StopJob(ctx context.Context, biz int, id int64, round int, audit gozzard.AuditRow) error

	// PruneJobs removes at most limit final jobs that ended before a time, with their tasks.
	PruneJobs(ctx context.Context, before time.Time, limit int) (int, error)

	// HasJobs reports whether a business ever had a job.
	HasJobs(ctx context.Context, biz int) (bool, error)
}
