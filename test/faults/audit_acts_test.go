//go:build linux

package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTR14HostsRecordCannotBeFlushed: a tenant sends many large commands to a shared host. The host's own record stays
// small, counts all of them, and has the commands of the other tenant complete, before and after the flood.
func TestTR14HostsRecordCannotBeFlushed(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	dir := t.TempDir()
	agent := s.StartAgentIn(t, 1, dir, "")
	ft.Until(t, 60*1e9, func() string { return "the host does not come" }, func() bool { return s.Online(1) })
	query := func(namespace string, items, length int) {
		t.Helper()
		var list []ft.J
		for i := range items {
			name := fmt.Sprint("p", i)
			list = append(list, ft.J{"meta": ft.J{"namespace": namespace, "name": name}, "op_type": 2,
				"hosts": []ft.J{ft.Host(1)}, "spec": largeDefinition(name, length)})
		}
		s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": list}))
	}

	query("bank", 1, 60)
	const rounds, items = 3, 50
	for range rounds {
		query("shop", items, 16_000)
	}
	query("bank", 1, 60)
	agent.Kill(syscall.SIGTERM)
	<-agent.Done()

	// Read the record.
	b, err := os.ReadFile(filepath.Join(dir, "acts.log"))
	if err != nil || len(b) > 1<<20 {
		t.Errorf("the act log has %d bytes: %v", len(b), err)
	}
	ring, err := signing.OpenKeyRing(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := os.ReadFile(filepath.Join(dir, "agent-id"))
	if err != nil {
		t.Fatal(err)
	}

	bank, short, folded, received := 0, 0, 0, map[string]bool{}
	for raw := range bytes.Lines(b) {
		var l struct {
			Kind     string
			Envelope []byte
			Contents []struct{ Command string }
			Ops      []string
			Received int
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatalf("%v in %.300s", err, raw)
		}
		switch {
		case l.Kind == "folded":
			folded += l.Received
		case l.Kind == "told" && len(l.Envelope) > 0:
			payload, err := ring.Open(gozzard.AgentID(bytes.TrimSpace(id)), l.Envelope)
			if err != nil {
				t.Errorf("the envelope cannot be proven: %v", err)
			}
			if bytes.Contains(payload, []byte("bank")) {
				bank++
			}
		case l.Kind == "told" && len(l.Contents) > 0:
			if short++; !strings.HasSuffix(l.Contents[0].Command, "(16000 bytes)") {
				t.Errorf("a short row: %.300s", raw)
			}
			for _, op := range l.Ops {
				received[op] = true
			}
		}
	}
	if n := len(received) + folded; bank < 2 || n < rounds*items || short == 0 {
		t.Errorf("%d commands of the other tenant, %d operations of %d, %d short rows", bank, n, rounds*items, short)
	}
}
