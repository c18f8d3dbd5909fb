package waves

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// A job shows what was done on hosts of its whole business. A caller that may see the business on every host sees all
// of its jobs. A caller that may see it on some hosts sees the jobs that it created: they contain only what it could
// see.

// Job returns a job of a business. The error is ErrNotFound for an unknown job and for one of another business.
func (r *Runner) Job(ctx context.Context, caller gozzard.Caller, biz int, id int64) (record.Job, error) {
	j, err := r.o.Store.Job(ctx, biz, id)
	if err == nil && !maySee(caller, &j) {
		return record.Job{}, gozzard.Errorf(gozzard.ErrNotFound,
			"business %d has no job %d; jobs are kept for a limited time", biz, id)
	}
	return j, err
}

func maySee(caller gozzard.Caller, j *record.Job) bool {
	own := caller.App == j.Caller.App && caller.User == j.Caller.User
	return caller.Rights.SeesBusinessHosts(j.Biz) || own && caller.Rights.SeesBusiness(j.Biz)
}

// Jobs lists the jobs of a business that the caller may see, newest first.
func (r *Runner) Jobs(
	ctx context.Context, caller gozzard.Caller, f record.JobFilter,
) (total int, jobs []record.Job, err error) {
	if !narrow(caller, &f) {
		return 0, nil, nil
	}
	return r.o.Store.Jobs(ctx, f)
}

// CountJobs counts the jobs that Jobs lists.
func (r *Runner) CountJobs(ctx context.Context, caller gozzard.Caller, f record.JobFilter) ([]record.JobCount, error) {
	if !narrow(caller, &f) {
		return nil, nil
	}
	return r.o.Store.CountJobs(ctx, f)
}

// narrow changes a filter to the jobs that the caller may see; seen is false if there are none.
func narrow(caller gozzard.Caller, f *record.JobFilter) (seen bool) {
	if !caller.Rights.SeesBusiness(f.Biz) {
		return false
	}
	if !caller.Rights.SeesBusinessHosts(f.Biz) {
		if len(f.Users) > 0 && !slices.Contains(f.Users, caller.User) {
			return false
		}
		f.Apps, f.Users = []string{caller.App}, []string{caller.User}
	}
	return true
}

// Tasks lists the tasks of a job of a business.
func (r *Runner) Tasks(
	ctx context.Context, caller gozzard.Caller, biz int, f record.JobTaskFilter,
) (record.JobTaskPage, error) {
	if _, err := r.Job(ctx, caller, biz, f.Job); err != nil {
		return record.JobTaskPage{}, err
	}
	return r.o.Store.Tasks(ctx, f)
}

// HasJobs reports whether a business ever had a job.
func (r *Runner) HasJobs(ctx context.Context, caller gozzard.Caller, biz int) (bool, error) {
	if !caller.Rights.SeesBusiness(biz) {
		return false, nil
	}
	return r.o.Store.HasJobs(ctx, biz)
}
