package supervise

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// pool is a group with what was seen of it so far.
type pool struct {
	gozzard.Group
	cpu, mem int // samples in a row over the limit
}

// member is one process of a pool as far as its use of one resource goes.
type member struct {
	used   float64
	limit  float64 // its own; 0 is none
	hosted bool
}

// SetGroups replaces the resource pools of this host. Those that stay keep what was counted of them.
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

// poolAfter counts one more sample of a pool's sum. It tells when the pool was over its limit often enough in a
// row; then the count begins anew, so that the one that was chosen has time to go before the next.
func poolAfter(count int, sum, limit float64) (next int, act bool) {
	if limit <= 0 || !(sum > limit) {
		return 0, false
	}
	if count++; count < gozzard.DefaultLimitSamples {
		return count, false
	}
	return 0, true
}

// victim chooses who has to go: by weight 0 the one that uses most, by weight 1 the one that uses most of its own
// limit, where having none counts as the whole machine. The first of equals; -1 when nobody can be chosen. Only
// hosted processes are dealt with.
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

// watchPools compares the pools with the usage that was just measured.
func (s *Supervisor) watchPools(all []*actor) {
	s.poolMu.Lock()
	defer s.poolMu.Unlock()

	for i := range s.pools {
		p := &s.pools[i]
		actors, views := membersOf(p.Namespace, all)
		var act bool
		cpu := func(v view) (used, limit float64) { return float64(v.usage.CPU), v.spec.Resource.CPU }
		mem := func(v view) (used, limit float64) { return float64(v.usage.Mem), v.spec.Resource.Mem }
		members, sum := measure(views, cpu)
		if p.cpu, act = poolAfter(p.cpu, sum, p.CPULimit); act {
			s.choose(actors, views, victim(members, p.CPUWeight), poolText(p.Group, "cpu", sum, p.CPULimit))
			continue // the memory of the one that goes is freed as well
		}
		members, sum = measure(views, mem)
		if p.mem, act = poolAfter(p.mem, sum, p.MemLimit); act {
			s.choose(actors, views, victim(members, p.MemWeight), poolText(p.Group, "mem", sum, p.MemLimit))
		}
	}
}

func (s *Supervisor) choose(actors []*actor, views []view, i int, text string) {
	if i < 0 {
		s.log.Warn("a pool is over its limit and none of its processes is hosted", "text", text)
		return
	}
	actors[i].post(event{kind: eventLimit, breach: &breach{proc: views[i].proc, text: text, pool: true, over: true}})
}

// membersOf lists the running processes of a namespace in the order of their names.
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
		if v := a.snapshot(); v.known && v.spec != nil && !v.proc.IsZero() && v.sampled {
			running = append(running, a)
			views = append(views, v)
		}
	}

	return running, views
}

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
