package live

import "github.com/gozzard/gozzard"

// Find returns the ids of processes that the viewer sees, in ascending order. ok is false if the epoch is over.
func (v *View) Find(epoch string, wanted []gozzard.ProcID) (ids []uint32, ok bool) {
	a := v.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ring.has(epoch, a.seq) {
		return nil, false
	}

	// Look up the hosts, then the names, so that rows are compared by numbers.
	hosts := make(map[gozzard.AgentID][]uint32, len(a.words.hosts.Agent))
	for i, agent := range a.words.hosts.Agent {
		id := gozzard.AgentID(agent)
		hosts[id] = append(hosts[id], uint32(i)) // a host whose address changed has another entry
	}
	names := make([]bool, len(a.words.names.Name))
	pairs := make(map[uint64]struct{}, len(wanted))
	for _, w := range wanted {
		name, known := a.words.nameAt[w.Key]
		if !known {
			continue
		}
		names[name] = true
		for _, host := range hosts[w.Agent] {
			pairs[uint64(name)<<32|uint64(host)] = struct{}{}
		}
	}

	// Look at every row.
	for id := range a.table.cells {
		c := &a.table.cells[id]
		if c.seq == 0 || !names[c.name] {
			continue
		}
		if _, found := pairs[uint64(c.name)<<32|uint64(c.host)]; found {
			ids = append(ids, uint32(id))
		}
	}
	return ids, true
}
