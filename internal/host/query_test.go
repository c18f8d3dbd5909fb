//go:build linux || windows

package host_test

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// look looks for the process of a definition while it starts: nothing is on record, so name and owner decide.
func look(h *host.Host, k gozzard.Key, s *gozzard.Spec) (supervise.Found, error) {
	return h.Find(supervise.Query{Key: k, Spec: s, Starting: true})
}

// clean kills everything that commands of a key have started.
func clean(h *host.Host, k gozzard.Key) error {
	return h.Clear(supervise.Query{Key: k, Spec: &gozzard.Spec{}}, nil)
}
