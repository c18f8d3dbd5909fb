package live

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// audienceKey is equal for rights that show the same rows and hosts: only what decides about visibility is in it.
func audienceKey(rights *gozzard.Rights) string {
	if rights == nil {
		return ""
	}
	if rights.SeesAll() {
		return "all"
	}

	var parts []string
	for _, g := range rights.Grants {
		g.Actions, g.Accounts = nil, nil
		if g.Hosts = g.Scope(); g.Role != gozzard.RoleEnroller {
			g.Role = gozzard.RoleViewer
		}
		text, err := json.Marshal(g)
		if err != nil { // no grant is like that; a key that no other rights have is safe
			text = []byte(err.Error())
		}
		parts = append(parts, string(text))
	}

	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
}

// sight decides what an audience sees. It remembers its decisions about namespaces and hosts.
type sight struct {
	rights *gozzard.Rights
	all    bool
	spaces map[string]gozzard.Marks
	hosts  []hostSight // by number of the host
}

// hostSight is a decision about one version of a host.
type hostSight struct {
	info  *fleet.LiveHost // nil: not decided
	marks gozzard.Marks
	shown bool // the host itself is visible, also without a row
}

// maxSpaces bounds the remembered namespaces: agents choose their names.
const maxSpaces = 10_000

func newSight(rights *gozzard.Rights) sight {
	return sight{rights: rights, all: rights.SeesAll(), spaces: map[string]gozzard.Marks{}}
}

// row reports whether a row is visible on its host.
func (s *sight) row(r *fleet.LiveRow, host *fleet.LiveHost) bool {
	if s.all {
		return true
	}

	marks, ok := s.spaces[r.Key.Namespace]
	if !ok {
		if len(s.spaces) >= maxSpaces {
			clear(s.spaces)
		}
		marks = s.rights.MarkSpace(r.Key.Namespace)
		s.spaces[r.Key.Namespace] = marks
	}
	return marks.Meet(s.host(host).marks)
}

// host is the decision about a host.
func (s *sight) host(host *fleet.LiveHost) *hostSight {
	if n := int(host.Number) + 1; n > len(s.hosts) {
		s.hosts = append(s.hosts, make([]hostSight, n-len(s.hosts))...)
	}
	h := &s.hosts[host.Number]
	if h.info == host {
		return h
	}

	*h = hostSight{info: host, shown: host.Known}
	if !s.all {
		h.marks = s.rights.MarkHost(host.Ref)
		h.shown = host.Known && s.rights.SeesHost(host.Ref)
	}
	return h
}

// forgetHosts makes the next questions decide about hosts again: which business they belong to has changed.
func (s *sight) forgetHosts() { clear(s.hosts) }
