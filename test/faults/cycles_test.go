//go:build linux

package faults_test

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var cycles = flag.Int("faults.cycles", 100, "starts and stops of A16")

// A16: many cycles of start and stop. The agent's descriptors, memory and goroutines do not grow.
func TestA16Cycles(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	c := newCycler(t, s, min(100, max(10, *cycles/100)))
	n := max(1, *cycles/len(c.ds))

	// The first rounds warm the agent up: pools and maps reach their size, the journal is compacted, and the list of
	// events is full.
	c.run(max(3, n/10))
	atFirst := settled(agent)
	fmt.Printf("fault A16: warmed up: %s\n", atFirst)

	for done, tenth := 0, 1; done < n; tenth++ {
		some := min(n-done, max(1, n/10))
		c.run(some)
		done += some
		if tenth > 2 && n < 100 { // only the end counts
			continue
		}
		now := settled(agent)
		if tenth <= 2 {
			atFirst = held{max(atFirst.descriptors, now.descriptors), max(atFirst.rss, now.rss)}
		}
		if done < n && n >= 100 {
			fmt.Printf("fault A16: %d cycles: %s\n", done*len(c.ds), now)
		}
	}

	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%s, were %s", settled(agent), atFirst) },
		func() bool {
			return agent.Descriptors() <= atFirst.descriptors+5
		})

	atLast := settled(agent)
	used := goroutines(t, s, agent)
	fresh := goroutines(t, s, agent)
	fmt.Printf("fault A16: %d start/stop cycles: %s, at first %s; %d goroutines, started anew %d\n", n*len(c.ds),
		atLast, atFirst, used, fresh)

	if used > fresh+5 {
		t.Errorf("%d goroutines, %d after a new start", used, fresh)
	}
	// With fewer cycles the heap still finds its size. With more, a leak of 100 bytes a cycle shows.
	if n*len(c.ds) >= 50_000 && float64(atLast.rss) > 1.1*float64(atFirst.rss) {
		t.Errorf("memory grew by more than a tenth: %s, at first %s", atLast, atFirst)
	}
}

// cycler starts and stops a number of daemons in two tasks.
type cycler struct {
	t           *testing.T
	s           *ft.Server
	ds          []*ft.Daemon
	start, stop []ft.J
}

func newCycler(t *testing.T, s *ft.Server, n int) *cycler {
	c := &cycler{t: t, s: s, ds: daemons(t, "gzcycle", n)}
	for _, d := range c.ds {
		spec := d.Spec(ft.J{"start_check_secs": 0})
		// No scripts: a shell that starts a shell would take most of the time.
		spec["control"] = ft.J{
			"start_cmd": "setsid ./" + d.Name + " 1000000 </dev/null >/dev/null 2>&1 & echo $! > " + d.PIDFile(),
			"stop_cmd":  "kill $(cat " + d.PIDFile() + ")",
		}
		meta := ft.J{"namespace": "faults", "name": d.Name}
		c.start = append(c.start, ft.J{"meta": meta, "op_type": 0, "spec": spec, "hosts": host1})
		c.stop = append(c.stop, ft.J{"meta": meta, "op_type": 1, "spec": spec, "hosts": host1})
	}

	return c
}

func (c *cycler) run(times int) {
	c.t.Helper()
	for range times {
		for _, items := range [][]ft.J{c.start, c.stop} {
			for k, e := range c.s.Await(c.s.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) {
				if e.Code != 0 {
					c.t.Fatalf("%s: %+v", k, e)
				}
			}
		}
	}
}

// held is what an agent occupies.
type held struct {
	descriptors int
	rss         int64
}

func (h held) String() string { return fmt.Sprintf("%d descriptors, %d KB", h.descriptors, h.rss>>10) }

// settled is the minimum over a while: garbage that is not collected yet is no leak.
func settled(agent *ft.Program) held {
	h := held{agent.Descriptors(), agent.RSS()}
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		h = held{min(h.descriptors, agent.Descriptors()), min(h.rss, agent.RSS())}
	}
	return h
}

var goroutineLine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// goroutines counts those of an agent by its stack traces: the agent gets SIGQUIT, and is started again.
func goroutines(t *testing.T, s *ft.Server, agent *ft.Program) int {
	t.Helper()
	before := len(agent.Output())
	agent.Kill(syscall.SIGQUIT)
	words := agent.Output()[before:]
	if !strings.Contains(words, "SIGQUIT") {
		t.Fatalf("no goroutines in %s", strconv.Quote(words[:min(len(words), 500)]))
	}
	n := len(goroutineLine.FindAllString(words, -1))
	s.AgainOnline(t, agent)
	time.Sleep(time.Second) // the work after a start is done by then
	return n
}
