package control

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// placeChanges says when the places of a business last changed. The mutex of businesses guards it.
type placeChanges struct {
	generation uint64
	changed    map[int]uint64 // by business
}

// note records that a business changed.
func (c *placeChanges) note(biz int) {
	if c.changed == nil {
		c.changed = map[int]uint64{}
	}
	c.generation++
	c.changed[biz] = c.generation
}

// PlaceOf is the place of a process on a host in its business, zero if it is in none.
func (t *businesses) PlaceOf(host gozzard.HostRef, key gozzard.Key) topology.Place {
	biz, ok := gozzard.BusinessOf(key.Namespace)
	if !ok {
		return topology.Place{}
	}
	set, module, ok := t.index.Place(biz, host, key.Name)
	if !ok {
		return topology.Place{}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return topology.Place{Biz: biz, Name: t.heads[biz].Name, Set: set, Module: module}
}

// PlacesChanged lists the namespaces whose places may have changed since a generation, and the present generation.
func (t *businesses) PlacesChanged(since uint64) (namespaces []string, generation uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if since == t.places.generation {
		return nil, since
	}
	for biz, at := range t.places.changed {
		if at > since {
			namespaces = append(namespaces, topology.Namespace(biz))
		}
	}
	return namespaces, t.places.generation
}
