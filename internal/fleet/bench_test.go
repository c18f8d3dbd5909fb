package fleet_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

var benchRows = flag.Int("live.rows", 200_000, "rows of the fleet that is measured")

const rowsPerHost = 20

// filled makes an index of hosts with 20 processes each. Hosts share all names but one, and a tenth of the processes
// has a unique message.
func filled(rows int) *fleet.Index {
	x := fleet.New()
	for h := range rows / rowsPerHost {
		agent := agentName(h)
		x.PutHost(hostAt(agent, addr(h%4, h)))
		x.Full(agent, 1, 0, 1, hostReport(h, 0))
	}
	return x
}

func hostReport(h, round int) []gozzard.Status {
	list := make([]gozzard.Status, rowsPerHost)
	for p := range list {
		s := &list[p]
		*s = status(fmt.Sprintf("space-%d", h%50), fmt.Sprintf("service_%02d_%d", p, h%100))
		s.Labels = map[string]string{"proc_name": fmt.Sprintf("service_%02d", p), "bk_biz_id": fmt.Sprint(h % 50)}
		s.PID, s.CPU = int32(1000+p), float32(round)
		if p == 0 {
			s.Name = fmt.Sprintf("of_host_%d", h)
		}
		if p%10 == 0 {
			s.State, s.Message = gozzard.StateStopped, fmt.Sprintf("exited %d times on host %d", p, h)
		}
	}

	return list
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory reports the bytes per row, including hosts and indexes.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		x := filled(*benchRows)
		b.ReportMetric(float64(heap()-before)/float64(x.Len()), "bytes/row")
		runtime.KeepAlive(x)
	}
}

func BenchmarkIndex(b *testing.B) {
	x := filled(*benchRows)
	hosts := *benchRows / rowsPerHost
	rng := rand.New(rand.NewPCG(3, 4))
	b.Run("page100", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Page(all, "", rng.IntN(x.Len()-100), 100)
		}
	})

	b.Run("page100namespace", func(b *testing.B) {
		for b.Loop() {
			x.Page(all, "space-7", rng.IntN(*benchRows/50-100), 100)
		}
	})

	b.Run("lookup", func(b *testing.B) {
		for b.Loop() {
			h := rng.IntN(hosts)
			if _, ok := x.Get(agentName(h), gozzard.Key{Namespace: fmt.Sprintf("space-%d", h%50),
				Name: fmt.Sprintf("of_host_%d", h)}); !ok {
				b.Fatal("not found")
			}
		}
	})

	b.Run("ingest20", func(b *testing.B) {
		reports := make([][]gozzard.Status, 512)
		for i := range reports {
			reports[i] = hostReport(i%hosts, 1)
		}
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			x.Full(agentName(i%len(reports)), uint64(2+i), 0, 1, reports[i%len(reports)])
			i++
		}
	})

	b.Run("findHost", func(b *testing.B) {
		for b.Loop() {
			h := rng.IntN(hosts)
			x.Find(all, fleet.Filter{Clouds: []int{h % 4}, IPs: []netip.Addr{addr(h%4, h).IP}}, 0, 100)
		}
	})

	b.Run("findGlobEverywhere", func(b *testing.B) {
		for b.Loop() {
			x.Find(all, fleet.Filter{Names: []string{"*_host_*7"}}, 0, 100)
		}
	})

	b.Run("findStopped", func(b *testing.B) {
		for b.Loop() {
			x.Find(all, fleet.Filter{Conditions: []gozzard.Condition{gozzard.ConditionStopped}}, 0, 100)
		}
	})
}
