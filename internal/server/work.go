package server

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard/internal/taskname"
)

// maxWork limits the answer about the work of one user.
const maxWork = 100

// workOf lists the tasks and jobs of a user that have not ended.
func (s *Server) workOf(ctx context.Context, user string) (work []string, err error) {
	tasks, err := s.store.OpenTasksOf(ctx, user, maxWork)
	if err != nil {
		return nil, err
	}
	for _, id := range tasks {
		work = append(work, "task "+taskname.Of(id))
	}

	jobs, err := s.store.OpenJobs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		if jobs[i].Caller.User == user && len(work) < maxWork {
			work = append(work, fmt.Sprintf("job %d of business %d", jobs[i].ID, jobs[i].Biz))
		}
	}

	return work, nil
}
