//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/profile"
)

// serverRole is the part that is the server when profiles are wanted. The argument behind it is a profile.Server in JSON.
const serverRole = "server"

// startServer starts the built program, or this one as a server that writes profiles.
func (b *bench) startServer(data, agents string) (*child.Process, error) {
	o := profile.Server{Data: data, Listen: "127.0.0.1:0", Agents: agents, Profiles: b.profiles}
	if b.profiles == "" {
		return child.Start(b.dir, "server", exec.Command(b.binary, o.Args()...))
	}
	return child.StartSelf(b.dir, "server", roleFlag+serverRole, o)
}

// playServer is the part that startServer starts.
func playServer(text string) error {
	var s profile.Server
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return s.Run(ctx, nil)
}

// profiled is something that the server wrote CPU profiles of.
type profiled struct {
	what  string
	paths []string
}

// spent measures the CPU time of the server while f runs. The server writes a profile of it if they are wanted.
func (b *bench) spent(p *child.Process, what string, f func() error) (cpu, wall time.Duration, err error) {
	if b.profiles == "" {
		return child.Spent(p, f)
	}

	i := slices.IndexFunc(b.profiled, func(p profiled) bool { return p.what == what })
	if i < 0 {
		i = len(b.profiled)
		b.profiled = append(b.profiled, profiled{what: what})
	}
	name := fmt.Sprintf("%s-%d", what, len(b.profiled[i].paths)+1)
	b.profiled[i].paths = append(b.profiled[i].paths, filepath.Join(b.profiles, name+".cpu"))

	err = profile.Around(p, b.profiles, name, func() (err error) {
		cpu, wall, err = child.Spent(p, f)
		return err
	})
	return cpu, wall, err
}

// tellCosts names the largest costs of all that was profiled.
func (b *bench) tellCosts() error {
	for _, p := range b.profiled {
		c, err := profile.Read(p.paths...)
		if err != nil {
			return err
		}
		b.res.Note("The largest costs of the server, %s: %s.", p.what, c.Top(6))
	}
	return nil
}
