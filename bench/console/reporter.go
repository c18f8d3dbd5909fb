//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// The simulated fleet: hosts with many processes each, in some namespaces.
const (
	spaces     = 20
	partRows   = 250 // statuses in one message
	beatEvery  = 5 * time.Second
	changeTick = 250 * time.Millisecond
)

// reporter is one simulated host: a real link that says HELLO, reports all its processes once, and then some changes a
// second. It answers operations one after the other, and does not read what else the server sends.
type reporter struct {
	number    int
	processes int
	link      *nats.Link
	random    *rand.Rand
	statuses  []gozzard.Status
	beat      uint64

	mu  sync.Mutex
	ops []gozzard.Op // not answered yet; guarded by mu
}

// runReporters runs the hosts until the context ends. It prints a line when all have reported.
func runReporters(ctx context.Context, args []string) error {
	hosts, processes, changes := 0, 0, 0
	addr, secretFile := "", ""
	if len(args) != 6 {
		return fmt.Errorf("%d arguments instead of 6", len(args))
	}
	for i, to := range []*int{&hosts, &processes, &changes} {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			return err
		}
		*to = n
	}
	addr, secretFile = args[3], args[4]
	secret, ring, err := openRing(secretFile, args[5])
	if err != nil {
		return err
	}

	// Connect all hosts.
	var wg sync.WaitGroup
	up := make(chan struct{}, hosts)
	all := make([]*reporter, hosts)
	for i := range all {
		r := &reporter{number: i, processes: processes, random: rand.New(rand.NewPCG(uint64(i), 1))}
		r.link, err = nats.NewLink(nats.LinkOptions{URL: addr, Agent: agentOf(i), Secret: secret,
			Open:    func(b []byte) ([]byte, error) { return ring.Open(agentOf(i), b) },
			Command: r.take, Up: func() { up <- struct{}{} }})
		if err != nil {
			return err
		}
		all[i] = r
		wg.Go(func() { _ = r.link.Run(ctx) }) // ends with the context
	}
	for range all {
		select {
		case <-up:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	// Say HELLO until the server knows all hosts: it drops what comes faster than it can record.
	fmt.Println("connected")
	known := make(chan error, 1)
	go func() {
		var line string
		_, err := fmt.Scanln(&line)
		known <- err
	}()
	if err := helloUntil(all, known); err != nil {
		return err
	}

	// Report everything, then the changes.
	for _, r := range all {
		if err := r.everything(); err != nil {
			return err
		}
	}
	fmt.Println("reported")
	changeUntil(ctx, all, changes)
	wg.Wait()
	return nil
}

// openRing reads the secret with which hosts join, and keeps the key of the server in a folder.
func openRing(secretFile, dir string) (string, *signing.KeyRing, error) {
	secret, key, err := agentd.ReadJoinFile(secretFile)
	if err != nil {
		return "", nil, err
	}
	ring, err := signing.OpenKeyRing(dir, nil)
	if err != nil {
		return "", nil, err
	}
	return secret, ring, ring.Trust(key)
}

// helloUntil says HELLO for some hosts at a time, again and again, with the heartbeats of all, until something is known.
func helloUntil(all []*reporter, known <-chan error) error {
	const atOnce = 50
	for next := 0; ; next += atOnce {
		for i := range atOnce {
			if err := all[(next+i)%len(all)].hello(); err != nil {
				return err
			}
		}
		if next/atOnce%20 == 0 {
			for _, r := range all {
				if err := r.heartbeat(); err != nil {
					return err
				}
			}
		}
		select {
		case err := <-known:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *reporter) heartbeat() error {
	r.beat++
	return r.send(gozzard.Report{Kind: gozzard.ReportHeartbeat, Beat: r.beat})
}

// take keeps the operations of a command for later.
func (r *reporter) take(c *gozzard.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, c.Ops...)
}

// answer does the operation that came first, if there is one.
func (r *reporter) answer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ops) == 0 {
		return nil
	}
	op := r.ops[0]
	r.ops = r.ops[1:]
	return r.send(gozzard.Report{Kind: gozzard.ReportResults, Results: []gozzard.OpReport{{ID: op.ID, Ref: op.Ref,
		Phase: gozzard.PhaseDone, Outcome: gozzard.Outcome{Code: gozzard.CodeOK, Hosted: true}}}})
}

func spaceOf(i int) string { return fmt.Sprintf("game-%02d", i%spaces) }

func agentOf(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("bench-%05d", i)) }

func addrOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func (r *reporter) send(report gozzard.Report) error {
	report.Version, report.Session = gozzard.ProtocolVersion, 1
	report.Journal = gozzard.JournalPos{ID: [16]byte{1, byte(r.number >> 8), byte(r.number)}, LSN: 1}
	return r.link.Send(&report)
}

func (r *reporter) hello() error {
	return r.send(gozzard.Report{Kind: gozzard.ReportHello, Hello: &gozzard.Hello{Run: uint64(r.number) + 1,
		Host: gozzard.HostInfo{Agent: agentOf(r.number), Addrs: []gozzard.HostAddr{{IP: addrOf(r.number)}}}}})
}

// everything sends a full report in parts.
func (r *reporter) everything() error {
	now := time.Now().Unix()
	r.statuses = make([]gozzard.Status, r.processes)
	for i := range r.statuses {
		r.statuses[i] = gozzard.Status{
			Key:    gozzard.Key{Namespace: spaceOf(i), Name: fmt.Sprintf("process-%04d", i)},
			Wanted: gozzard.StateRunning, State: gozzard.StateRunning, Condition: gozzard.ConditionRunning, Hosted: true,
			PID: int32(1000 + i), StartedAt: now - int64(r.random.IntN(1_000_000)), ReportedAt: now,
			CPU: r.random.Float32() * 5, MemBytes: int64(r.random.IntN(1<<20)) << 10,
		}
		if r.random.IntN(500) == 0 {
			r.statuses[i].Condition = gozzard.ConditionCrashLoop
		}
	}

	parts := (len(r.statuses) + partRows - 1) / partRows
	for p := range parts {
		rows := r.statuses[p*partRows : min((p+1)*partRows, len(r.statuses))]
		err := r.send(gozzard.Report{Kind: gozzard.ReportStatus, Statuses: rows, Round: 1, Part: uint32(p), Parts: uint32(parts)})
		if err != nil {
			return err
		}
	}
	return nil
}

// change sends n processes with other figures; one in fifty has another state.
func (r *reporter) change(n int) error {
	rows := make([]gozzard.Status, 0, n)
	for range n {
		s := &r.statuses[r.random.IntN(len(r.statuses))]
		s.CPU, s.ReportedAt = r.random.Float32()*20, time.Now().Unix()
		s.MemBytes += int64(r.random.IntN(1<<20)) - 1<<19
		if r.random.IntN(50) == 0 {
			s.Condition = []gozzard.Condition{gozzard.ConditionRunning, gozzard.ConditionBackingOff}[r.random.IntN(2)]
		}
		rows = append(rows, *s)
	}
	return r.send(gozzard.Report{Kind: gozzard.ReportStatus, Statuses: rows})
}

// changeUntil sends changes of all hosts, so many a second, until the context ends.
func changeUntil(ctx context.Context, all []*reporter, perSecond int) {
	tick := time.NewTicker(changeTick)
	defer tick.Stop()
	beat := time.Now()
	each := int(float64(perSecond) * changeTick.Seconds() / float64(len(all)))
	step := 1
	if each == 0 { // few changes on many hosts: some hosts at a time
		each, step = 1, max(1, int(float64(len(all))/(float64(perSecond)*changeTick.Seconds())))
	}

	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		beats := time.Since(beat) > beatEvery
		if beats {
			beat = time.Now()
		}
		for i, r := range all {
			if (i+round)%step == 0 && perSecond > 0 {
				_ = r.change(each) // a link that is down is up again soon
			}
			_ = r.answer()
			if beats {
				_ = r.heartbeat()
			}
		}
	}
}
