//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// services writes the folders that runit and s6 read: one for each process, with a script that execs the process.
func (s *site) services() error {
	for i := range s.n {
		if err := s.write(filepath.Join("sv", s.process(i), "run"), "#!/bin/sh\nexec "+s.command(i)+"\n",
			0o755); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) serviceDirs() (list []string) {
	for i := range s.n {
		list = append(list, s.path("sv", s.process(i)))
	}
	return list
}

// runitPeer is runsvdir with a runsv for each process.
type runitPeer struct{ *site }

func (p *runitPeer) prepare(context.Context) error { return p.services() }
func (p *runitPeer) start(context.Context) error   { return p.launch("runsvdir", "-P", p.path("sv")) }

func (p *runitPeer) status(ctx context.Context) error {
	return p.site.run(ctx, "sv", append([]string{"status"}, p.serviceDirs()...)...)
}

// stopAll does what runit does at a system shutdown: runsvdir makes every runsv stop its process and exit.
func (p *runitPeer) stopAll(context.Context) error {
	if err := syscall.Kill(p.main(), syscall.SIGHUP); err != nil {
		return fmt.Errorf("cannot signal runsvdir: %w", err)
	}
	return nil
}

// s6Peer is s6-svscan with an s6-supervise for each process.
type s6Peer struct{ *site }

func (p *s6Peer) prepare(context.Context) error { return p.services() }

func (p *s6Peer) start(context.Context) error {
	return p.launch("s6-svscan", "-c", strconv.Itoa(p.n+50), p.path("sv"))
}

// status uses a shell that asks for one service after the other: s6 has no command for several services.
func (p *s6Peer) status(ctx context.Context) error {
	return p.site.run(ctx, "/bin/sh", "-c", "for d in "+strings.Join(p.serviceDirs(), " ")+
		"; do s6-svstat $d || exit 1; done")
}

func (p *s6Peer) stopAll(ctx context.Context) error {
	return p.site.run(ctx, "s6-svscanctl", "-t", p.path("sv"))
}
