package waves

import "time"

// SplitAt makes operations smaller than record.MaxTargets, for tests with few processes.
func (r *Runner) SplitAt(n int) { r.maxTargets = n }

// LookEvery makes the Runner look more often for jobs that no server runs.
func (r *Runner) LookEvery(d time.Duration) { r.lookEvery = d }
