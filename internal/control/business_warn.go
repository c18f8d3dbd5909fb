package control

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard/internal/topology"
)

// maxWarnings bounds the warnings about one document.
const maxWarnings = 20

// warnings says what a document has that is accepted, because it may come later or another system may know better, and that fails
// when it is used: hosts that are not in the fleet, and commands that cannot be rendered.
func (t *businesses) warnings(ctx context.Context, b *topology.Business) (list []string) {
	more := 0
	warn := func(format string, args ...any) {
		if len(list) == maxWarnings {
			more++
			return
		}
		list = append(list, fmt.Sprintf(format, args...))
	}

	for _, s := range b.Services() {
		known := false
		if host := s.Host; host.Agent != "" {
			_, known = t.o.Live.Host(host.Agent)
		} else {
			_, known = t.o.Live.HostByAddr(host.Addr())
		}
		if !known {
			warn("host %s of service instance %d is not in the fleet", s.Host.Addr(), s.ID)
		}
	}
	for _, err := range b.Unrenderable(ctx) {
		warn("%v", err)
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return list
}
