package supervise

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// pool is a group whose processes share limits, with the counts of its samples.
type pool struct {
	gozzard.Group
	cpu, mem int // samples in a row over the limit
}

// member is one process of a pool and its use of one resource.
type member struct {
	used   float64
	limit  float64 // of the process alone; 0 means no limit
	hosted bool
}

// SetGroups replaces the resource pools of this host. Pools that stay keep their counts.
func (s *Supervisor) SetGroups(groups []gozzard.Group) {
	s.poolMu.Lock()
	defer s.poolMu.Unlock()

	old := s.pools
	s.pools = make([]pool, 0, len(groups))
	for _, g := range groups {
		p := pool{Group: g}
		if i := slices.IndexFunc(old, func(o pool) bool { return o.Namespace == g.Namespace && o.ID == g.ID }); i >= 0 {
			p.cpu, p.mem = old[i].cpu, old[i].mem
		}
		s.pools = append(s.pools, p)
	}
}

// poolAfter counts one more sample of a pool's sum. It returns act when the pool was over its limit in enough
// samples in a row. The count then restarts at zero, so that the chosen process has time to end before another is chosen.
func poolAfter(count int, sum, limit float64) (next int, act bool) {
	if limit <= 0 || !(sum > limit) {
		return 0, false
	}
	if count++; count < gozzard.DefaultLimitSamples {
		return count, false
	}
	return 0, true
}

// victim chooses the process that must give way. With weight 0 it is the one that uses most. With weight 1 it is the
// one that uses most in relation to its own limit; without a limit, that is the whole machine. Of equals the first is
// chosen. Only supervised processes are chosen; if there is none, victim returns -1.
func victim(members []member, weight int) int {
	best, top := -1, 0.0
	for i, m := range members {
		score := m.used
		if weight == 1 {
			own := m.limit
			if own <= 0 {
				own = 100
			}
			score = m.used / own
		}
		if m.hosted && score > top {
			best, top = i, score
		}
	}

	return best
}

// watchPools compares the usage that was just measured with the limits of the pools.
func (s *Supervisor) watchPools(all []*actor) {
	s.poolMu.Lock()
	defer s.poolMu.Unlock()

	for i := range s.pools {
		p := &s.pools[i]
		actors, views := membersOf(p.Namespace, all)
		var act bool

		cpu := func(v view) (used, limit float64) { return float64(v.usage.CPU), v.spec.Resource.CPU }
		members, sum := measure(views, cpu)
		if p.cpu, act = poolAfter(p.cpu, sum, p.CPULimit); act {
			s.reportPool(actors, views, victim(members, p.CPUWeight), poolText(p.Group, "cpu", sum, p.CPULimit))
			continue // a process that ends frees its memory as well
		}

		mem := func(v view) (used, limit float64) { return float64(v.usage.Mem), v.spec.Resource.Mem }
		members, sum = measure(views, mem)
		if p.mem, act = poolAfter(p.mem, sum, p.MemLimit); act {
			s.reportPool(actors, views, victim(members, p.MemWeight), poolText(p.Group, "mem", sum, p.MemLimit))
		}
	}
}

// reportPool makes the chosen actor act on the limit of its pool.
func (s *Supervisor) reportPool(actors []*actor, views []view, chosen int, text string) {
	if chosen < 0 {
		s.log.Warn("a pool is over its limit and none of its processes is supervised", "text", text)
		return
	}
	b := &breach{proc: views[chosen].proc, text: text, pool: true, over: true}
	actors[chosen].post(event{kind: eventLimit, breach: b})
}

// membersOf lists the running processes of a namespace, in the order of their names.
func membersOf(namespace string, all []*actor) ([]*actor, []view) {
	var actors []*actor
	for _, a := range all {
		if a.key.Namespace == namespace {
			actors = append(actors, a)
		}
	}

	slices.SortFunc(actors, func(x, y *actor) int { return x.key.Compare(y.key) })

	var views []view
	running := actors[:0]
	for _, a := range actors {
		if v := a.snapshot(); v.managed && v.spec != nil && !v.proc.IsZero() && v.sampled {
			running = append(running, a)
			views = append(views, v)
		}
	}

	return running, views
}

// measure lists how much of a resource each process uses, and the sum.
func measure(views []view, of func(view) (used, limit float64)) (members []member, sum float64) {
	members = make([]member, len(views))
	for i, v := range views {
		m := &members[i]
		m.hosted = v.status.Hosted
		m.used, m.limit = of(v)
		sum += m.used
	}
	return members, sum
}
