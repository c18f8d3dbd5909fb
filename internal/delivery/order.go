package delivery

import "github.com/gozzard/gozzard"

// unsentOrder has, for each process, the newest attempt in state Queued; the older ones hang on it. Operations on one
// process are sent in the order of their tasks, whatever turns their tasks have.
type unsentOrder map[gozzard.ProcID]*Attempt

// add puts an attempt in its place by the number of its task. Nearly always it is the newest.
func (o unsentOrder) add(a *Attempt) {
	id := a.process()
	newer, older := (*Attempt)(nil), o[id]
	for older != nil && older.ref.Task > a.ref.Task {
		newer, older = older, older.older
	}

	a.newer, a.older = newer, older
	if older != nil {
		older.newer = a
	}
	if newer != nil {
		newer.older = a
	} else {
		o[id] = a
	}
}

// remove takes an attempt out.
func (o unsentOrder) remove(a *Attempt) {
	switch {
	case a.newer != nil:
		a.newer.older = a.older
	case a.older != nil:
		o[a.process()] = a.older
	default:
		delete(o, a.process())
	}

	if a.older != nil {
		a.older.newer = a.newer
	}
	a.older, a.newer = nil, nil
}

// oldest is the attempt on the same process that must be sent first: a itself when there is none before it.
func (o unsentOrder) oldest(a *Attempt) *Attempt {
	for a.older != nil {
		a = a.older
	}
	return a
}
