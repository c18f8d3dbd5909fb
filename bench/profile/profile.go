//go:build linux

// Package profile makes the server of a benchmark write profiles, and says what its processor time was spent on.
package profile

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

// patience is how long a part may take to begin or end a profile. With 19,000 handshakes at a time a minute was too short.
const patience = 5 * time.Minute

// Around makes a part that called Serve write profiles of what f does: CPU while it runs, and memory after it. They are in
// dir under name, with the endings .cpu, .goroutine and .heap.
func Around(p *child.Process, dir, name string, f func() error) error {
	heap := filepath.Join(dir, name+".heap")
	if err := os.RemoveAll(heap); err != nil { // of an earlier run
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "next"), []byte(name), 0o644); err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	begun := func() (bool, error) {
		_, err := os.Stat(filepath.Join(dir, "next"))
		return errors.Is(err, os.ErrNotExist), err
	}
	if err := child.Until(context.Background(), patience, "the profile", begun, p); err != nil {
		return err
	}

	if err := f(); err != nil {
		return err
	}

	if err := p.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	return child.Until(context.Background(), patience, "the profiles", func() (bool, error) {
		_, err := os.Stat(heap)
		return err == nil, err
	}, p)
}

// Serve makes this part write profiles: SIGUSR1 begins a CPU profile under the name in the file "next", SIGUSR2 ends it and
// writes what holds memory. more writes what else a benchmark wants to know then, under names that begin with path; nil:
// nothing.
func Serve(ctx context.Context, dir string, more func(path string) error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	if more == nil {
		more = func(string) error { return nil }
	}
	go write(ctx, dir, signals, more, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// write writes profiles until ctx ends.
func write(ctx context.Context, dir string, signals <-chan os.Signal, more func(string) error, log *slog.Logger) {
	var cpu *os.File
	name := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			if sig == syscall.SIGUSR1 {
				cpu, name, err = begin(dir)
			} else if cpu != nil {
				pprof.StopCPUProfile()
				path := filepath.Join(dir, name)
				err = errors.Join(cpu.Close(), more(path), writeOne(path, "goroutine"), writeOne(path, "heap"))
				cpu = nil
			}
		}
		if err != nil {
			log.Error("cannot write a profile", "err", err)
		}
	}
}

// begin begins a CPU profile. The file with its name is gone then.
func begin(dir string) (*os.File, string, error) {
	next := filepath.Join(dir, "next")
	name, err := os.ReadFile(next)
	if err != nil {
		return nil, "", err
	}
	f, err := os.Create(filepath.Join(dir, string(name)+".cpu"))
	if err != nil {
		return nil, "", err
	}
	return f, string(name), errors.Join(pprof.StartCPUProfile(f), os.Remove(next))
}

// writeOne writes a profile under a name that appears when it is whole.
func writeOne(path, kind string) error {
	path += "." + kind
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
