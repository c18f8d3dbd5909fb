package live_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/live"
)

var benchRows = flag.Int("live.rows", 1_000_000, "rows of the fleet that is measured")

const (
	benchEach    = 20   // processes of a host
	benchChanges = 5000 // a quarter of 20,000 changes a second
)

// benchFleet has hosts with 20 processes each, with 200 names in 50 namespaces.
func benchFleet(rows int) *fleet.Index {
	x := fleet.New()
	for h := range rows / benchEach {
		x.PutHost(hostAt(agentName(h), 1, true, addr(h%4, h)))
		x.Full(agentName(h), 1, 0, 1, benchReport(h, 0))
	}
	return x
}

func benchReport(h, round int) []gozzard.Status {
	list := make([]gozzard.Status, benchEach)
	for i := range list {
		list[i] = status(fmt.Sprintf("space-%d", h%50), fmt.Sprintf("service_%02d_%d", i, h%10))
		list[i].CPU, list[i].MemBytes = float32((h*7+i*3+round)%100)/10, int64(h%1000+round)<<20
		list[i].PID, list[i].StartedAt = int32(1000+h*benchEach%60000+i), 1700000000+int64(h%100000)
	}
	return list
}

// changer applies 5,000 changes, a quarter of a second's share of 20,000, on hosts in turn.
func changer(x *fleet.Index, rows int) func() {
	at, round := 0, int(time.Now().UnixNano()%1000)
	return func() {
		for range benchChanges / benchEach {
			if at++; at >= rows/benchEach {
				at, round = 0, round+1
			}
			x.Apply(agentName(at), benchReport(at, round+1), nil)
		}
	}
}

// BenchmarkBatch measures what a tick costs with 20,000 changes a second: for one audience, and beside narrow ones.
func BenchmarkBatch(b *testing.B) {
	x := benchFleet(*benchRows)
	for _, narrow := range []int{0, 20} {
		b.Run(fmt.Sprintf("audiences=%d", narrow+1), func(b *testing.B) {
			hub := live.New(live.Options{Fleet: x})
			view, err := hub.Join(gozzard.Everything())
			if err != nil {
				b.Fatal(err)
			}
			for i := range narrow {
				if _, err := hub.Join(&gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer,
					Namespaces: []string{fmt.Sprintf("space-%d", i)}, Hosts: gozzard.HostsAny}}}); err != nil {
					b.Fatal(err)
				}
			}

			hub.Tick()
			change, before := changer(x, *benchRows), hub.Counts().Encoded
			var took time.Duration
			n := 0

			for b.Loop() {
				change()
				start := time.Now()
				hub.Tick()
				took += time.Since(start)
				n++
			}

			b.ReportMetric(took.Seconds()*1000/float64(n), "ms/tick")
			b.ReportMetric(float64(hub.Counts().Encoded-before)/float64(n), "bytes/tick")
			runtime.KeepAlive(view)
		})
	}
}

// BenchmarkSnapshot measures the first viewer, and a new snapshot after a change.
func BenchmarkSnapshot(b *testing.B) {
	x := benchFleet(*benchRows)
	for b.Loop() {
		// The first viewer.
		before := heap()
		hub := live.New(live.Options{Fleet: x})
		start := time.Now()
		view, err := hub.Join(gozzard.Everything())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms/join")

		// A snapshot.
		start = time.Now()
		data, err := view.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms/snapshot")

		b.ReportMetric(float64(len(data)), "bytes")
		b.ReportMetric(float64(heap()-before)/float64(*benchRows), "bytes/row")
		runtime.KeepAlive(view)
		view.Close()
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkViewers measures what 200 viewers of one audience cost beside the batch itself: each takes the encoded
// events. Writing them to a connection comes on top.
func BenchmarkViewers(b *testing.B) {
	x := benchFleet(*benchRows)
	hub := live.New(live.Options{Fleet: x})
	type place struct {
		view  *live.View
		epoch string
		seq   uint64
	}
	var viewers []*place
	for range 200 {
		view, err := hub.Join(gozzard.Everything())
		if err != nil {
			b.Fatal(err)
		}
		viewers = append(viewers, &place{view: view, epoch: view.Epoch()})
	}
	hub.Tick()
	for _, v := range viewers {
		_, v.seq, _, _ = v.view.After(v.epoch, v.seq)
	}

	change := changer(x, *benchRows)
	var took time.Duration
	n, sent := 0, 0
	for b.Loop() {
		change()
		hub.Tick()
		start := time.Now()
		for _, v := range viewers {
			frames, next, _, ok := v.view.After(v.epoch, v.seq)
			if !ok {
				b.Fatal("a viewer needs a new snapshot")
			}
			for _, f := range frames {
				sent += len(f)
			}
			v.seq = next
		}
		took += time.Since(start)
		n++
	}
	b.ReportMetric(took.Seconds()*1e6/float64(n), "us/tick-of-200")
	b.ReportMetric(float64(sent)/float64(n)/200, "bytes/viewer")
}

// BenchmarkFeed measures what following costs a report of 20 rows.
func BenchmarkFeed(b *testing.B) {
	x := benchFleet(100_000)
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%t", on), func(b *testing.B) {
			x.Follow(on)
			rows := benchReport(7, 1)
			for b.Loop() {
				x.Apply(agentName(7), rows, nil)
			}
		})
	}
}
