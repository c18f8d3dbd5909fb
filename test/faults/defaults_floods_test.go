//go:build linux

package faults_test

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/wire"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// agentsAreLimited: by default the server disconnects an enrolled agent that floods, and another agent keeps its
// session.
func agentsAreLimited(t *testing.T, f *plainFleet) {
	help := f.gozzard(t, "server", "--help")
	for flag, want := range map[string]string{"rate-agent": "500", "rate-agent-bytes": "2.097152e\\+06",
		"rate-hello": "2000"} {
		if !regexp.MustCompile(`--` + flag + ` .*\(default ` + want + `\)`).MatchString(help) {
			t.Errorf("--%s is not %s without being set", flag, want)
		}
	}

	sessions := f.agent.Sessions()
	token, err := enrol.ParseToken(strings.TrimSpace(f.gozzard(t, "token", "create")))
	if err != nil {
		t.Fatal(err)
	}

	m, err := enrol.Join(t.Context(), enrol.JoinOptions{Server: f.cred.URL, Token: token, Dir: t.TempDir(),
		Agent: "flooder", IPs: []netip.Addr{netip.MustParseAddr("127.0.0.77")}, Machine: "m"})
	if err != nil {
		t.Fatal(err)
	}

	connect := func() (*natsgo.Conn, error) {
		return natsgo.Connect("nats://"+f.agents, natsgo.Secure(enrol.NewRenewer(m, "m", nil).TLS()),
			natsgo.TLSHandshakeFirst(), natsgo.Name("m/1"), natsgo.NoReconnect(),
			natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))
	}

	conn, err := connect()
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close()
	report := wire.AppendReport(nil, &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportStatus,
		Session: 1})
	ft.Until(t, time.Minute, func() string { return "it floods, and the server does not disconnect it" }, func() bool {
		for range 5000 {
			if conn.Publish("st.0.flooder", report) != nil {
				return true
			}
		}
		return conn.IsClosed()
	})

	if again, err := connect(); !errors.Is(err, natsgo.ErrAuthorization) {
		if err == nil {
			again.Close()
		}
		t.Errorf("it comes again: %v", err)
	}

	if n := f.agent.Sessions(); n != sessions {
		t.Errorf("the agent beside it has %d sessions, before %d", n, sessions)
	}
	if body := f.admin(t, "GET", "/metrics",
		nil).body; !regexp.MustCompile(`refused_total\{rule="agent_flood"\} [1-9]`).MatchString(body) {
		t.Error("not counted")
	}
}
