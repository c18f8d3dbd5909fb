//go:build linux

package console

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/test/fleettest"
)

// RawHost is a host whose agent is the test: it reports what the test wants, also what no real host can be made to
// report, such as a wrong clock.
type RawHost struct {
	Agent  gozzard.AgentID
	link   *nats.Link
	vitals atomic.Pointer[gozzard.Vitals]
}

// StartRawHost runs `gozzard server`, and one raw host that is online.
func StartRawHost(t testing.TB, info gozzard.HostInfo, flags ...string) (*Fleet, *RawHost) {
	t.Helper()
	need(t)
	data := filepath.Join(t.TempDir(), "server")
	agents := "127.0.0.1:" + strconv.Itoa(fleettest.FreePort(t))
	dev := &fleettest.Dev{API: &fleettest.API{}, Data: data, Program: fleettest.Start(t, "server", nil, append([]string{"server",
		"--data", data, "--listen", "127.0.0.1:" + strconv.Itoa(fleettest.FreePort(t)), "--agent-listen", agents,
		"--rate-app=0"}, flags...)...)}
	f := &Fleet{Dev: dev}

	// Wait for the server.
	fleettest.Until(t, time.Minute, dev.Output, func() bool {
		b, err := os.ReadFile(filepath.Join(data, "credentials.json"))
		if err != nil || json.Unmarshal(b, &dev.Cred) != nil {
			return false
		}
		f.Client, err = client.New(dev.Cred.URL, client.Credentials{AppCode: dev.Cred.AppCode, AppSecret: dev.Cred.Secret,
			Username: dev.Cred.Username})
		return err == nil && f.Client.Ready(t.Context()) == nil
	})
	t.Cleanup(f.Client.Close)

	return f, f.joinRaw(t, agents, info)
}

// joinRaw connects the host and opens its session.
func (f *Fleet) joinRaw(t testing.TB, agents string, info gozzard.HostInfo) *RawHost {
	t.Helper()
	secret, _, err := agentd.ReadJoinFile(filepath.Join(f.Data, "join.secret"))
	if err != nil {
		t.Fatal(err)
	}

	h := &RawHost{Agent: info.Agent}
	h.link, err = nats.NewLink(nats.LinkOptions{URL: agents, Agent: info.Agent, Secret: secret,
		Command: func(*gozzard.Command) {}})
	if err != nil {
		t.Fatal(err)
	}

	// Say HELLO until the server knows the host, and beat on.
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.link.Run(ctx) }) // ends with the context
	wg.Go(func() { h.beatOn(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	fleettest.Until(t, time.Minute, func() string { return "the server does not know the raw host" }, func() bool {
		h.Report(gozzard.Report{Kind: gozzard.ReportHello, Hello: &gozzard.Hello{Run: 1, Host: info}})
		page, err := f.Client.Hosts(t.Context(), 0, 10)
		return err == nil && len(page.Hosts) == 1 && page.Hosts[0].Online
	})
	return h
}

// beatOn sends heartbeats until ctx ends.
func (h *RawHost) beatOn(ctx context.Context) {
	for beat := uint64(1); ctx.Err() == nil; beat++ {
		r := gozzard.Report{Kind: gozzard.ReportHeartbeat, Beat: beat}
		if v := h.vitals.Load(); v != nil {
			now := *v
			now.At += time.Now().UnixMilli()
			r.Vitals = &now
		}
		h.Report(r)

		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// SetVitals makes the heartbeats carry vitals. At is how far the clock is ahead, in milliseconds.
func (h *RawHost) SetVitals(v gozzard.Vitals) { h.vitals.Store(&v) }

// Report sends a report. What is lost while the link is down is sent again by the caller.
func (h *RawHost) Report(r gozzard.Report) {
	r.Version, r.Session = gozzard.ProtocolVersion, 1
	r.Journal = gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}
	_ = h.link.Send(&r)
}

// Command is a call of the program as the administrator of the server.
func (f *Fleet) Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	file := "credentials.json"
	if _, err := os.Stat(filepath.Join(f.Data, file)); err != nil {
		file = "dev.json"
	}
	cmd := exec.Command(fleettest.Binary(t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(f.Data, file))
	return cmd
}
