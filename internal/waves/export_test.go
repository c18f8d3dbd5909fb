package waves

import "time"

// SplitAt makes operations smaller than control.MaxTargets, for tests that have less.
func (r *Runner) SplitAt(n int) { r.most = n }

// LookEvery makes the looks for jobs that nobody drives more frequent.
func (r *Runner) LookEvery(d time.Duration) { r.look = d }
