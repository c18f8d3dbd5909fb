package delivery

import "github.com/gozzard/gozzard"

// quotas count, by app, the attempts in a state that counts for it, and those whose task is on its way into the record.
type quotas map[string]int

// reserve counts attempts of a task that is about to be accepted. limit 0 is no limit.
func (q quotas) reserve(app string, n, limit int) error {
	if have := q[app]; limit > 0 && n > 0 && have+n > limit {
		return gozzard.Errorf(gozzard.ErrRateLimited,
			"app %s has %d attempts under way, with these %d there would be more than %d: try again when some are done",
			app, have, n, limit)
	}
	q[app] += n
	return nil
}

func (q quotas) release(app string, n int) {
	if q[app] -= n; q[app] <= 0 {
		delete(q, app)
	}
}
