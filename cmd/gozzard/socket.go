package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	socketName = "agent.sock"
	noSocket   = "none"
)

// socketConfig is where people on this host find an agent.
type socketConfig struct {
	Path  string // "": nowhere
	Group string
}

func (c *socketConfig) register(f *pflag.FlagSet) {
	f.StringVar(&c.Path, "socket", socketName,
		"`PATH` of the unix socket for people on this host, a mere name being in the state folder; none for no socket")
	f.StringVar(&c.Group, "socket-group", "",
		"`GROUP` whose members may look (needs --socket in a folder that they can enter and not write, such as /run/gozzard/agent.sock)")
}

// settle makes the flags a path. Given says that somebody chose it.
func (c *socketConfig) settle(data string, given bool) error {
	path, err := socketPath(data, c.Path)
	if err != nil {
		return failed(err)
	}

	if !agentsock.Supported {
		if given && path != "" {
			return usage("--socket %s: an agent has no local socket on this system", c.Path)
		}
		path = ""
	}

	own, err := socketPath(data, socketName)
	if err != nil {
		return failed(err)
	}
	if c.Group != "" && (path == "" || filepath.Dir(path) == filepath.Dir(own)) {
		return usage("--socket-group %s: its members cannot enter the state folder; give --socket in a folder that they can enter and not write, such as /run/gozzard/%s", c.Group, socketName)
	}

	c.Path = path
	return nil
}

// socketPath is where the socket of the agent of a state folder is; "" when there is none.
func socketPath(data, given string) (string, error) {
	if given == "" || given == noSocket {
		return "", nil
	}
	if !strings.ContainsRune(given, filepath.Separator) {
		given = filepath.Join(data, given)
	}
	path, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("cannot find the socket: %w", err)
	}
	return path, nil
}

// openLocal makes the door for people on this host.
func (n *agentNode) openLocal(cfg agentConfig, ring *signing.KeyRing, rules *policy.Reach) {
	if cfg.Socket.Path == "" {
		return
	}
	n.local = agentsock.New(agentsock.Options{
		Path: cfg.Socket.Path, Group: cfg.Socket.Group, Log: cfg.Log,
		Status:    func() agentsock.Status { return n.localStatus(cfg, ring, rules) },
		Processes: n.localProcesses,
		Reconnect: n.link.Reconnect,
	})
}

// localStatus says how the agent stands.
func (n *agentNode) localStatus(cfg agentConfig, ring *signing.KeyRing, rules *policy.Reach) agentsock.Status {
	s := n.agent.Summary()
	key := ring.Key()
	up, fault := n.link.State()
	st := agentsock.Status{
		Agent: s.Host.Agent, Version: s.Host.Version, PID: os.Getpid(), UID: os.Geteuid(), Mode: n.own.Mode.String(),
		StartedAt: s.Host.StartedAt, Hostname: s.Host.Hostname,
		Cloud: cfg.Cloud, IPs: cfg.IPs, Server: cfg.Server,
		Session:  agentsock.Session{Open: s.Open, Number: s.Session, Since: s.Host.StartedAt, HeardAt: unixOf(s.Heard)},
		Link:     agentsock.Link{Up: up, Connects: n.link.Stats().Connects, Fault: fault},
		Key:      agentsock.Key{ID: key.ID().String(), Epoch: key.Epoch},
		Degraded: append([]string{}, s.Host.Degraded...), Processes: n.agent.Processes(),
		Journal: agentsock.Journal{ID: hex.EncodeToString(s.Journal.ID[:]), LSN: s.Journal.LSN},
	}
	switch {
	case s.Open:
		st.Session.Since = s.Opened.Unix()
	case !s.Heard.IsZero():
		st.Session.Since = s.Heard.Unix()
	}

	if n.keep != nil {
		st.Certificate = unixOf(n.keep.NotAfter())
	}
	if f, ok := rules.Rules.(*policy.File); ok {
		p := f.Current()
		st.Policy = agentsock.Policy{File: f.Path(), AllowRoot: p.AllowRoot, Text: p.String()}
	}

	return st
}

// localProcesses says what the agent keeps.
func (n *agentNode) localProcesses(most int) ([]agentsock.Process, int) {
	lives, total := n.agent.Lives(most)
	rows := make([]agentsock.Process, len(lives))
	for i, l := range lives {
		rows[i] = agentsock.Process{
			Namespace: l.Namespace, Name: l.Name, State: l.State.String(), Wanted: l.Wanted.String(),
			Hosted: l.Hosted, PID: l.PID,
			Since: l.Since, Restarts: l.Restarts, Version: l.Version, Message: l.Message,
			CPU: l.CPU, Mem: l.Mem, FD: l.FD, Disk: l.Disk, Net: l.Net,
		}
	}
	return rows, total
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
