//go:build unix

package supervise_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

const crowd = 1000

// crowdOf runs a supervisor over processes that are running and supervised, and returns the machine.
func crowdOf(b *testing.B, sampleEvery time.Duration, event func(gozzard.Event)) (machine *sim.Host,
	keys []gozzard.Key, stop func()) {
	b.Helper()
	machine = sim.NewHost()

	spec := definition(func(s *gozzard.Spec) {
		s.Control.Version = ""
		s.Policy.StartCheckSecs = 0
		s.Resource = gozzard.Resource{CPU: 90, Mem: 90}
	})

	var recs []supervise.Record
	for i := range crowd {
		key := gozzard.Key{Namespace: "bench", Name: fmt.Sprint(i)}
		machine.Launch(key)
		keys = append(keys, key)
		recs = append(recs, supervise.Record{Key: key, Spec: spec, Hosted: true, Wanted: gozzard.StateRunning})
	}

	s := supervise.New(supervise.Options{Host: machine, SampleEvery: sampleEvery, Event: event})
	s.Restore(recs, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}

	for {
		up := 0
		for _, st := range s.Statuses() {
			if st.State == gozzard.StateRunning {
				up++
			}
		}
		if up == crowd {
			break
		}
		time.Sleep(time.Millisecond)
	}

	time.Sleep(400 * time.Millisecond) // the first samples
	return machine, keys, stop
}

// BenchmarkIdle measures what a minute with 1,000 processes at the usual six samples costs when nothing happens,
// in addition to what the machine needs.
func BenchmarkIdle(b *testing.B) {
	const every = 20 * time.Millisecond
	_, _, stop := crowdOf(b, every, nil)
	defer stop()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	samples := 0
	for b.Loop() {
		time.Sleep(every)
		samples++
	}

	perSample := float64(cpuTime()-cpu) / float64(samples)
	runtime.ReadMemStats(&after)
	b.ReportMetric(6*perSample/1e6, "cpu-ms/min")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(samples), "mallocs/sample")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	b.ReportMetric(float64(before.HeapAlloc)/crowd, "heap-B/process")
}

// BenchmarkKillToRestart measures how long it takes from the end of one of 1,000 processes until its successor exists.
func BenchmarkKillToRestart(b *testing.B) {
	machine, keys, stop := crowdOf(b, time.Minute, nil)
	defer stop()
	i := 0
	for b.Loop() {
		key := keys[i%crowd]
		began := machine.Starts(key)
		machine.End(key, supervise.Exit{Known: true, Code: 1})
		for machine.Starts(key) == began {
			runtime.Gosched()
		}
		if i++; i == crowd {
			break // a second round would meet the back-off
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i), "ns/restart")
}

// BenchmarkStorm measures how long it takes until 1,000 processes that were killed at once are back.
func BenchmarkStorm(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		var back atomic.Int64
		done := make(chan struct{})
		machine, keys, stop := crowdOf(b, time.Minute, func(e gozzard.Event) {
			if e.Kind == gozzard.EventStarted && back.Add(1) == crowd {
				close(done)
			}
		})
		b.StartTimer()
		for _, key := range keys {
			machine.End(key, supervise.Exit{Known: true, Signal: "SIGKILL"})
		}
		<-done
		b.StopTimer()
		stop()
		b.StartTimer()
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
