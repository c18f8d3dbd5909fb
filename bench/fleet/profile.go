//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// profile makes a server write profiles of what f does: CPU while it runs, and memory after it. The built program writes
// none.
func (b *bench) profile(p *child.Process, name string, f func() error) error {
	if b.binary != "" {
		return f()
	}

	mark := filepath.Join(b.profiles, "next")
	if err := os.WriteFile(mark, []byte(name), 0o644); err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGUSR2); err != nil {
		return err
	}

	heap := filepath.Join(b.profiles, name+".heap")
	return child.Until(context.Background(), time.Minute, "the profiles", func() (bool, error) {
		_, err := os.Stat(heap)
		return err == nil, err
	}, p)
}

// serveProfiles makes a part write profiles: SIGUSR1 begins a CPU profile under the name in the file "next", SIGUSR2 ends
// it and writes what holds memory.
func serveProfiles(ctx context.Context, o order) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go writeProfiles(ctx, o.Profile, signals, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// writeProfiles writes profiles until ctx ends.
func writeProfiles(ctx context.Context, dir string, signals <-chan os.Signal, log *slog.Logger) {
	var cpu *os.File
	name := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			if sig == syscall.SIGUSR1 {
				cpu, name, err = beginProfile(dir)
			} else if cpu != nil {
				pprof.StopCPUProfile()
				err = errors.Join(cpu.Close(), writeHolding(filepath.Join(dir, name+".memory"), holding()),
					writeProfile(filepath.Join(dir, name+".goroutine"), "goroutine"),
					writeProfile(filepath.Join(dir, name+".heap"), "heap"))
				cpu = nil
			}
		}
		if err != nil {
			log.Error("cannot write a profile", "err", err)
		}
	}
}

func beginProfile(dir string) (*os.File, string, error) {
	name, err := os.ReadFile(filepath.Join(dir, "next"))
	if err != nil {
		return nil, "", err
	}
	f, err := os.Create(filepath.Join(dir, string(name)+".cpu"))
	if err != nil {
		return nil, "", err
	}
	return f, string(name), pprof.StartCPUProfile(f)
}

// writeProfile writes a profile under a name that appears when it is whole.
func writeProfile(path, kind string) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	err = errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
