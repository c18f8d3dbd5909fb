//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/internal/agentd"
)

// profiledAgent is the first argument with which this program is an agent that writes profiles. It is not among the
// measured ones.
const profiledAgent = "profiled-agent"

// profileSignal begins a CPU profile under the name in the file "next", and ends it with a profile of the heap. The agent
// uses all signals that have a name for this.
const profileSignal = syscall.Signal(40)

// profileSite is where the agent writes its profiles.
func (s *site) profileSite() string { return s.path("profiles") }

// runProfiledAgent runs the agent of the program with the arguments data, server, secret file, policy and folder of profiles.
func runProfiledAgent(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) != 5 {
		return fmt.Errorf("%s needs 5 arguments", profiledAgent)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	socket, err := agentd.FindSocket(args[0], agentd.SocketName, "", false)
	if err != nil {
		return err
	}

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, profileSignal)
	go writeProfiles(ctx, args[4], signals, log)

	o := agentd.ServeOptions{JoinFile: args[2], OwnIPs: true, Trial: agentd.DefaultTrial, Args: os.Args[1:]}
	o.Data, o.Server, o.IPs, o.Sample, o.Version = args[0], args[1], []string{"127.0.0.1"}, 10*time.Second, "bench"
	o.Policy.File, o.Socket, o.Log = args[3], socket, log
	o.Fatal = func(err error) { log.Error("cannot go on", "err", err); os.Exit(1) }
	return agentd.Serve(ctx, o)
}

// writeProfiles writes profiles until ctx ends.
func writeProfiles(ctx context.Context, dir string, signals <-chan os.Signal, log *slog.Logger) {
	var cpu *os.File
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		var err error
		if cpu == nil {
			cpu, err = beginProfile(dir)
		} else {
			pprof.StopCPUProfile()
			err = errors.Join(cpu.Close(), writeHeap(cpu.Name()))
			cpu = nil
		}
		if err != nil {
			log.Error("cannot write a profile", "err", err)
		}
	}
}

func beginProfile(dir string) (*os.File, error) {
	name, err := os.ReadFile(filepath.Join(dir, "next"))
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, string(name)+".cpu"))
	if err != nil {
		return nil, err
	}
	return f, pprof.StartCPUProfile(f)
}

// writeHeap writes the profile of the heap beside that of the processor, under a name that appears when it is whole.
func writeHeap(cpu string) error {
	runtime.GC()
	path := strings.TrimSuffix(cpu, ".cpu") + ".heap"
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	if err := errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// profiles measures where the agent spends time and memory with n processes, in a site of its own.
func (b *bench) profiles(ctx context.Context, n int) error {
	measure := func(ctx context.Context, s *site, p peer) error {
		if err := pause(ctx, b.size.settle+b.size.quiet); err != nil {
			return err
		}
		err := b.profile(ctx, s, p, "at rest", func() error { return pause(ctx, b.size.profile) })
		one := *b
		one.size.storms = 1
		return errors.Join(err, b.profile(ctx, s, p, "storm", func() error { return one.measureStorm(ctx, s, p) }))
	}
	if n > atOneCall {
		return b.largeSite(ctx, n, true, func(s *site, p *gozzardPeer) error { return measure(ctx, s, p) })
	}
	c := candidate{name: "gozzard", make: func(s *site) peer { return &gozzardPeer{site: s, profiled: true} }}
	return b.at(ctx, c, n, how{}, figures{}, measure)
}

// profile profiles the agent while do runs, and adds the largest costs to the results.
func (b *bench) profile(ctx context.Context, s *site, p peer, name string, do func() error) error {
	file := strings.ReplaceAll(name, " ", "-")
	if err := os.WriteFile(filepath.Join(s.profileSite(), "next"), []byte(file), 0o600); err != nil {
		return fmt.Errorf("cannot begin a profile: %w", err)
	}
	if err := syscall.Kill(p.main(), profileSignal); err != nil {
		return fmt.Errorf("cannot begin a profile: %w", err)
	}
	err := do()
	if err := errors.Join(err, syscall.Kill(p.main(), profileSignal)); err != nil {
		return err
	}

	cpu, heap := filepath.Join(s.profileSite(), file+".cpu"), filepath.Join(s.profileSite(), file+".heap")
	written, err := s.track.await(ctx, s.patience, func() bool { _, err := os.Stat(heap); return err == nil })
	if err != nil || !written {
		return fmt.Errorf("the agent has written no profile: %w", err)
	}
	for _, x := range []struct{ what, file, flag string }{{"processor", cpu, "-cum"},
		{"heap", heap, "-sample_index=inuse_space"}} {
		text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", x.flag,
			x.file).Output()
		if err != nil {
			return fmt.Errorf("cannot read a profile: %w", err)
		}
		b.res.cost(fmt.Sprintf("N = %d, %s, %s", s.n, name, x.what), largest(string(text), x.flag == "-cum"))
	}
	return errors.Join(b.keepProfile(s.n, cpu), b.keepProfile(s.n, heap))
}

// keepProfile copies a profile to the folder where profiles stay, if there is one.
func (b *bench) keepProfile(n int, path string) error {
	if b.keep == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.MkdirAll(b.keep, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.keep, fmt.Sprintf("%d-%s", n, filepath.Base(path))), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot keep a profile: %w", err)
	}
	return nil
}

// parts are the functions with which the work of the agent begins, and what they do. They do not call each other.
func parts() map[string]string {
	return map[string]string{
		"internal/host.(*Host).Sample":                "measures processes",
		"internal/supervise.(*actor).work":            "decides about processes and identifies them",
		"internal/supervise.(*actor).command.func1":   "prepares and starts commands",
		"internal/host.onOwnThread.func1":             "starts programs, on threads of their own",
		"internal/host.(*Host).tidyLoop":              "collects commands and orphans, rotates logs, removes cgroups",
		"internal/host.(*watcher).loop":               "notices the end of processes",
		"internal/history.(*Store).Run":               "writes histories",
		"internal/agent.(*Agent).loop":                "journal, verdicts and reports",
		"runtime.gcBgMarkWorker":                      "garbage collector",
		"runtime.mstart":                              "scheduler of goroutines",
		"runtime.mcall":                               "scheduler of goroutines, on the way to another one",
		"github.com/nats-io/nats.go.(*Conn).flusher":  "sends to the server",
		"github.com/nats-io/nats.go.(*Conn).readLoop": "receives from the server",
	}
}

// largest are the three largest costs in a list of pprof: parts of the agent by the time of everything that they call, or
// functions by the memory that they have allocated.
func largest(text string, byPart bool) (list []string) {
	type cost struct {
		share float64
		text  string
	}
	var all []cost
	known := parts()
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // flat, flat%, sum%, cum, cum%, name
		if len(f) < 6 || !strings.HasSuffix(f[1], "%") || !strings.HasSuffix(f[4], "%") {
			continue
		}
		name := strings.TrimPrefix(strings.Join(f[5:], " "), "github.com/gozzard/gozzard/")
		name = strings.TrimSuffix(name, " (inline)")
		value, share := f[0], f[1]
		if byPart {
			if known[name] == "" {
				continue
			}
			value, share = f[3], f[4]
			name += ", " + known[name]
		}
		n, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
		if err == nil {
			all = append(all, cost{n, fmt.Sprintf("%s (%s): %s", share, value, name)})
		}
	}

	slices.SortStableFunc(all, func(x, y cost) int { return int(100 * (y.share - x.share)) })
	for _, c := range all[:min(3, len(all))] {
		list = append(list, c.text)
	}
	return list
}
