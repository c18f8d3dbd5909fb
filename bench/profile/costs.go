//go:build linux

package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// spenders says by parts of function names what processor time is spent on. A stack belongs to the first line of which
// one part is in any of its functions.
var spenders = []struct {
	what  string
	parts []string
}{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"TLS", []string{"crypto/tls."}},
	{"signatures of commands", []string{"gozzard/internal/signing."}},
	{"the record", []string{"gozzard/internal/sqlstore.", "modernc.org/"}},
	{"requests over HTTP", []string{"net/http."}},
	{"reports and sessions in the control plane", []string{"gozzard/internal/control.", "gozzard/internal/fleet.",
		"gozzard/internal/delivery.", "gozzard/internal/wire.", "gozzard/internal/server."}},
	{"the hub, between broker and control plane", []string{"gozzard/internal/nats.", "nats-io/nats%2ego.", "nats-io/nats.go."}},
	{"the broker reads and routes", []string{"server.(*client).readLoop"}},
	{"the broker writes", []string{"server.(*client).writeLoop", "server.(*client).flush"}},
	{"the broker, other", []string{"nats-server/"}},
	{"goroutines that wait and wake", []string{"runtime.schedule", "runtime.mcall", "runtime.sysmon", "runtime.findRunnable"}},
}

const spentElse = "other"

// Costs are shares of processor time.
type Costs struct {
	total time.Duration
	by    map[string]time.Duration
}

// Read reads CPU profiles of one thing.
func Read(paths ...string) (c Costs, err error) {
	text, err := exec.Command("go", append([]string{"tool", "pprof", "-traces"}, paths...)...).Output()
	if err != nil {
		return c, fmt.Errorf("cannot read %s: %w", paths, err)
	}
	return parse(text), nil
}

// parse reads the stacks that pprof prints: a line of hyphens before each, then the time with the innermost function,
// then the functions that called it.
func parse(text []byte) Costs {
	c := Costs{by: map[string]time.Duration{}}
	var took time.Duration
	var stack []string
	flush := func() {
		if took > 0 {
			c.total += took
			c.by[spenderOf(stack)] += took
		}
		took, stack = 0, stack[:0]
	}

	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "-----") {
			flush()
			continue
		}
		first, rest, two := strings.Cut(line, " ")
		if d, err := time.ParseDuration(first); err == nil && two {
			took, line = d, strings.TrimSpace(rest)
		}
		stack = append(stack, line)
	}
	flush()
	return c
}

func spenderOf(stack []string) string {
	for _, s := range spenders {
		for _, part := range s.parts {
			if slices.ContainsFunc(stack, func(f string) bool { return strings.Contains(f, part) }) {
				return s.what
			}
		}
	}
	return spentElse
}

// Top names the largest costs.
func (c *Costs) Top(n int) string {
	type share struct {
		what string
		took time.Duration
	}
	var list []share
	for what, took := range c.by {
		if what != spentElse {
			list = append(list, share{what, took})
		}
	}
	slices.SortFunc(list, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.what, b.what))
	})

	var words []string
	for _, s := range list[:min(n, len(list))] {
		words = append(words, fmt.Sprintf("%s %.0f %%", s.what, 100*float64(s.took)/float64(max(c.total, 1))))
	}
	return strings.Join(words, ", ")
}
