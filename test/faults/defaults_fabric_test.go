//go:build linux

package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/signing"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// ownSubjectsOnly connects to the fabric with the identity of the agent, as root on its host can.
func ownSubjectsOnly(t *testing.T, f *plainFleet) {
	m, err := enrol.LoadMembership(f.state)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(f.state, "enrolment.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the agent's identity: %v, %v", info, err)
	}

	f.agent.Kill(syscall.SIGKILL) // one at a time: two would count as a clone
	defer f.agentAgain(t)
	var denied atomic.Int32
	conn, err := natsgo.Connect("nats://"+f.agents, natsgo.Secure(enrol.NewRenewer(m, enrol.Machine(), nil).TLS()),
		natsgo.TLSHandshakeFirst(), natsgo.NoReconnect(),
		natsgo.Timeout(30*time.Second), natsgo.Name(enrol.Machine()+"/1"),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			if strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				denied.Add(1)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close()
	asked := int32(0)
	refused := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		asked++
		ft.Until(t, 30*time.Second, func() string { return what + " is not refused" },
			func() bool { _ = conn.Flush(); return denied.Load() == asked })
	}

	for _, s := range []string{">", "op.>", "op.0.another", "res.>", "st.>", "_INBOX.>", "$SYS.>", "$JS.>"} {
		_, err := conn.SubscribeSync(s)
		refused("to hear "+s, err)
		_, err = conn.QueueSubscribeSync(s, "workers")
		refused("to hear "+s+" in a queue group", err)
	}

	for _, s := range []string{"res.0.another", "st.0.another", "op.0.another", "op.0." + string(m.Agent), "_INBOX.x",
		"$SYS.REQ.SERVER.PING", "$JS.API.INFO"} {
		refused("to say something on "+s, conn.Publish(s, []byte("x")))
	}
}

// operationsAreSigned: the act log of the host has the commands as they arrived. They open with the server's key, and
// not with any bit changed.
func operationsAreSigned(t *testing.T, f *plainFleet) {
	key, err := os.Stat(filepath.Join(f.data, signing.SignerFile))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the signing key: %v, %v", key, err)
	}

	body := `{"action":"stop","namespace":"signed","names":["p"],"hosts":[{"cloud":0,"ip":"127.0.0.1"}]}`
	ft.Until(t, time.Minute, f.agent.Output, func() bool {
		return f.admin(t, "POST", "/api/v1/operations", strings.NewReader(body)).status < 300 &&
			len(received(t, f.state)) > 0
	})

	ring, err := signing.OpenKeyRing(f.state, nil)
	if err != nil {
		t.Fatal(err)
	}

	m, err := enrol.LoadMembership(f.state)
	if err != nil {
		t.Fatal(err)
	}

	keys := f.gozzard(t, "key", "list", "--data", f.data)
	if k := ring.Key(); k.Epoch != 1 || !strings.Contains(keys, k.ID().String()) {
		t.Errorf("the agent obeys %s of epoch %d, the server has\n%s", k.ID(), k.Epoch, keys)
	}

	for _, line := range received(t, f.state) {
		if line.Key != ring.Key().ID().String() {
			t.Errorf("a command of key %s", line.Key)
		}
		if _, err := ring.Open(m.Agent, line.Envelope); err != nil {
			t.Errorf("what the agent obeyed does not open: %v", err)
		}
		if _, err := ring.Open(gozzard.AgentID("another"), line.Envelope); err == nil {
			t.Error("it opens for another agent")
		}
		line.Envelope[len(line.Envelope)/2] ^= 1
		if _, err := ring.Open(m.Agent, line.Envelope); err == nil {
			t.Error("it opens with a bit changed")
		}
	}
}

type receivedLine struct {
	Kind     string `json:"kind"`
	Key      string `json:"key"`
	Envelope []byte `json:"envelope"`
}

// received reads the commands in the act log of a host.
func received(t *testing.T, state string) (lines []receivedLine) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(state, "acts.log"))
	if err != nil {
		t.Fatal(err)
	}

	for raw := range bytes.Lines(b) {
		if !bytes.HasSuffix(raw, []byte("\n")) {
			break // the agent is writing this line
		}
		var line receivedLine
		if err := json.Unmarshal(raw, &line); err != nil {
			t.Fatal(fmt.Errorf("acts.log: %w", err))
		}
		if line.Kind == "told" {
			lines = append(lines, line)
		}
	}

	return lines
}
