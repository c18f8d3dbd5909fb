package blueking

import (
	"cmp"
	"slices"
	"strings"
)

// Served is one method of one path of a door.
type Served struct {
	Method string
	Path   string // with {} for a number
	Name   string
	Access Access
}

// Served lists everything that the door serves.
func (h *Handler) Served() []Served {
	var list []Served
	for path, s := range h.table {
		for _, r := range s.routes {
			for _, m := range r.methods() {
				list = append(list, Served{Method: m, Path: path, Name: r.Name, Access: r.Access})
			}
		}
	}
	slices.SortFunc(list, func(a, b Served) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return list
}
