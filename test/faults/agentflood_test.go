//go:build linux

package faults_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

var (
	floodHosts = flag.Int("faults.hosts", 100, "hosts beside the one that floods, in TestTD3AgentFlood")
	agentFlood = flag.Duration("faults.agentflood", 4*time.Second, "how long TestTD3AgentFlood floods")
)

// evilAgent is a bare client of the fabric with the credential of one agent. It publishes as fast as it can and
// reconnects when the server closes its connection.
type evilAgent struct {
	addr, secret    string
	payload         []byte
	stop            chan struct{}
	sent, bytes     atomic.Int64
	closed, refused atomic.Int64 // connections that the server closed, and connections that it refused
}

func (e *evilAgent) run() {
	for {
		conn, err := natsgo.Connect("nats://"+e.addr, natsgo.UserInfo("0.evil", e.secret), natsgo.NoReconnect(),
			natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))
		if err == nil {
			e.pour(conn)
			conn.Close()
		} else if errors.Is(err, natsgo.ErrAuthorization) {
			e.refused.Add(1)
		}
		select {
		case <-e.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *evilAgent) pour(conn *natsgo.Conn) {
	for i := 0; ; i++ {
		subject := []string{"st.0.evil", "res.0.evil"}[i%2]
		if err := conn.Publish(subject, e.payload); err != nil {
			e.closed.Add(1)
			return
		}
		e.sent.Add(1)
		e.bytes.Add(int64(len(e.payload)))
		select {
		case <-e.stop:
			return
		default:
		}
	}
}

// metric reads one value of the server's metrics, 0 when it is missing.
func metric(t *testing.T, s *ft.Server, name string) float64 {
	t.Helper()
	code, body := s.Get(t, "/metrics")
	if code != 200 {
		t.Fatalf("metrics: %d %s", code, body)
	}

	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		return 0
	}

	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}

	return v
}

// TestTD3AgentFlood: one agent floods the fabric at full speed next to a fleet. No other agent loses its session and
// callers get their answers. The server mutes, flags and disconnects the one agent. `make flood` runs it with the 999
// other agents of the threat table.
func TestTD3AgentFlood(t *testing.T) {
	s := ft.StartServer(t, "", "--report-interval=10s")
	sim := s.StartSim(t, *floodHosts, "--log-level=info")
	online := func() int { return int(metric(t, s, `gozzard_agents{online="true"}`)) }
	ft.Until(t, 3*time.Minute, func() string { return fmt.Sprintf("%d hosts are online", online()) },
		func() bool { return online() == *floodHosts })

	_, base, n0 := valid(t, s, *agentFlood/2)
	sessions := sim.Sessions()

	join, err := os.ReadFile(filepath.Join(s.Data, "join.secret"))
	if err != nil {
		t.Fatal(err)
	}

	secret, _, _ := strings.Cut(string(join), " ")
	rows := make([]gozzard.Status, 400)
	for i := range rows {
		rows[i] = gozzard.Status{Key: gozzard.Key{Namespace: "evil", Name: "p" + strconv.Itoa(i)},
			State: gozzard.StateRunning, PID: int32(i)}
	}

	e := &evilAgent{addr: s.Agents, secret: secret, stop: make(chan struct{}),
		payload: wire.AppendReport(nil, &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportStatus,
			Session: 1, Statuses: rows})}
	done := make(chan struct{})
	go func() { e.run(); close(done) }()
	p50, p99, n := valid(t, s, *agentFlood)

	ft.Until(t, 2*time.Minute, func() string { return "the agent that floods is let go on: " + s.Output() },
		func() bool { return e.refused.Load() > 0 })

	low := online()
	for end := time.Now().Add(*agentFlood / 2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		low = min(low, online())
	}

	close(e.stop)
	<-done
	refused := metric(t, s, `gozzard_security_refused_total{rule="agent_flood"}`)
	fmt.Printf("threat TD3: %d messages (%d MiB) published by one agent, %.0f refused unread, disconnected %d times, %d attempts to reconnect refused; of %d others %d lost their session; "+
		"valid callers: %d requests, p50 %s, p99 %.2f times that of before (%s of %d); server has %d MiB\n",
		e.sent.Load(), e.bytes.Load()>>20, refused, e.closed.Load(), e.refused.Load(), *floodHosts,
		max(*floodHosts-low, sim.Sessions()-sessions),
		n, p50.Round(time.Microsecond), float64(p99)/float64(base), base.Round(time.Microsecond), n0, s.RSS()>>20)

	if low != *floodHosts || sim.Sessions() != sessions {
		t.Errorf("only %d of %d agents stayed online, %d opened a new session", low, *floodHosts,
			sim.Sessions()-sessions)
	}

	if refused == 0 || !strings.Contains(s.Output(), "is banned") {
		t.Error("the agent that floods was not refused for that")
	}
}

// TestTD3FlagIsShown: `gozzard hosts` and the API show that an agent floods.
func TestTD3FlagIsShown(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	sim := s.StartSim(t, 3)
	online := func() int { return int(metric(t, s, `gozzard_agents{online="true"}`)) }
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d hosts are online", online()) },
		func() bool { return online() == 3 })

	sim.Kill(15) // the test uses the name of one of its hosts below
	join, err := os.ReadFile(filepath.Join(s.Data, "join.secret"))
	if err != nil {
		t.Fatal(err)
	}

	secret, _, _ := strings.Cut(string(join), " ")
	conn, err := natsgo.Connect("nats://"+s.Agents, natsgo.UserInfo("0.sim-00001", secret), natsgo.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close()

	for range 10 {
		if err := conn.Publish("st.0.sim-00001", []byte{0xff}); err != nil {
			t.Fatal(err)
		}
	}

	ft.Until(t, time.Minute, func() string { return "the connection is still there" }, conn.IsClosed)
	var page struct {
		Hosts []struct{ Agent, Flag string }
	}
	code, body := s.Get(t, "/api/v1/hosts")
	if err := json.Unmarshal([]byte(body), &page); err != nil || code != 200 {
		t.Fatalf("%d %s %v", code, body, err)
	}

	flagged := slices.DeleteFunc(page.Hosts, func(h struct{ Agent, Flag string }) bool { return h.Flag == "" })
	if len(flagged) != 1 || flagged[0].Agent != "sim-00001" || !strings.Contains(flagged[0].Flag, "muted until") ||
		!strings.Contains(flagged[0].Flag, "cannot be read") {
		t.Errorf("flags %+v", flagged)
	}

	if n := metric(t, s, `gozzard_security_refused_total{rule="agent_malformed"}`); n != 10 {
		t.Errorf("counted %v", n)
	}
}
