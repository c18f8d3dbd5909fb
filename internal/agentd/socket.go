package agentd

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/policy"
)

// SocketName is the name of the socket in the state folder.
const SocketName = "agent.sock"

// noSocket is how people say that there is no socket.
const noSocket = "none"

// SocketOptions say where people on this host reach the agent.
type SocketOptions struct {
	Path  string // "": nowhere
	Group string // its members may look; "": only root and the agent's account may
}

// FindSocket makes socket options of what people write. given says that they chose the path.
func FindSocket(data, path, group string, given bool) (SocketOptions, error) {
	found, err := SocketPath(data, path)
	if err != nil {
		return SocketOptions{}, err
	}

	if !agentsock.Supported {
		if given && found != "" {
			return SocketOptions{}, fmt.Errorf("--socket %s: an agent has no local socket on this system", path)
		}
		found = ""
	}

	own, err := SocketPath(data, SocketName)
	if err != nil {
		return SocketOptions{}, err
	}
	if group != "" && (found == "" || filepath.Dir(found) == filepath.Dir(own)) {
		return SocketOptions{}, fmt.Errorf("--socket-group %s: its members cannot enter the state folder; give --socket in "+
			"a folder that they can enter and not write, such as /run/gozzard/%s", group, SocketName)
	}

	return SocketOptions{Path: found, Group: group}, nil
}

// SocketPath is where the socket of the agent of a state folder is; "" when there is none.
func SocketPath(data, given string) (string, error) {
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

// openSocket makes the local socket. It is there when the agent runs.
func (a *Agent) openSocket() error {
	if a.options.Socket.Path == "" {
		return nil
	}
	a.local = agentsock.New(agentsock.Options{
		Path: a.options.Socket.Path, Group: a.options.Socket.Group, Log: a.options.Log,
		Status: a.localStatus, Processes: a.localProcesses, Reconnect: a.link.Reconnect, Tried: a.options.Ready,
	})
	return nil
}

// localStatus is the answer to `gozzard agent status`.
func (a *Agent) localStatus() agentsock.Status {
	s := a.agent.Summary()
	key := a.keys.Key()
	up, fault := a.link.State()
	st := agentsock.Status{
		Agent: s.Host.Agent, Version: s.Host.Version, PID: os.Getpid(), UID: os.Geteuid(), Mode: a.own.Mode.String(),
		StartedAt: s.Host.StartedAt, Hostname: s.Host.Hostname,
		Cloud: a.options.Cloud, IPs: a.options.IPs, Server: cmp.Or(a.link.Address(), a.options.Server),
		Session:  agentsock.Session{Open: s.Open, Number: s.Session, Since: s.Host.StartedAt, HeardAt: unixOf(s.Heard)},
		Link:     agentsock.Link{Up: up, Connects: a.link.Stats().Connects, Fault: fault},
		Key:      agentsock.Key{ID: key.ID().String(), Epoch: key.Epoch},
		Degraded: append([]string{}, s.Host.Degraded...), Processes: a.agent.Processes(),
		Journal: agentsock.Journal{ID: hex.EncodeToString(s.Journal.ID[:]), LSN: s.Journal.LSN,
			Fault: s.Fault},
		Groups: a.host.Groups(),
	}
	switch {
	case s.Open:
		st.Session.Since = s.Opened.Unix()
	case !s.Heard.IsZero():
		st.Session.Since = s.Heard.Unix()
	}
	if why := a.rejected.Load(); why != nil && !s.Open {
		st.Session.Fault = *why
	}

	if a.renewer != nil {
		st.Certificate = unixOf(a.renewer.NotAfter())
	}
	if f, ok := a.rules.Rules.(*policy.File); ok {
		p := f.Current()
		st.Policy = agentsock.Policy{File: f.Path(), AllowRoot: p.AllowRoot, Text: p.String()}
	}

	return st
}

// localProcesses is the answer to `gozzard agent ps`.
func (a *Agent) localProcesses(most int) ([]agentsock.Process, int) {
	lives, total := a.agent.Lives(most)
	rows := make([]agentsock.Process, len(lives))
	for i, l := range lives {
		rows[i] = agentsock.Process{
			Namespace: l.Namespace, Name: l.Name, State: l.ConditionOf().String(), Wanted: l.Wanted.String(),
			Hosted: l.Hosted, PID: l.PID,
			Since: l.Since, Restarts: int(l.Restarts), Kind: l.Kind.String(),
			Exit: l.Exit, NextAt: l.NextAt, LastRun: l.LastRun, Health: l.Health.String(), HealthMessage: l.HealthMessage,
			MemBytes: l.MemBytes, Version: l.Version, Message: l.Message,
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
