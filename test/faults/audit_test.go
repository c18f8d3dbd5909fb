//go:build linux

package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/wire"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// openAudit opens the audit of the server on a data folder.
func openAudit(t *testing.T, data string) (*sqlstore.AuditFile, error) {
	t.Helper()
	if ft.InPostgres(t) {
		pg, name := ft.DatabaseOf(t, data)
		return sqlstore.OpenAuditPostgres(t.Context(), pg.URL(name))
	}
	return sqlstore.OpenAuditFile(t.Context(), filepath.Join(data, "gozzard.db"))
}

// inFolder are the flags of a command that reads the record of a data folder itself.
func inFolder(t *testing.T, data string) []string {
	t.Helper()
	if ft.InPostgres(t) {
		pg, name := ft.DatabaseOf(t, data)
		return []string{"--data", data, "--record", pg.URL(name)}
	}
	return []string{"--data", data}
}

// auditedTasks reads the whole audit in a data folder and returns the tasks in it.
func auditedTasks(t *testing.T, data string) map[string]bool {
	t.Helper()
	f, err := openAudit(t, data)
	if err != nil {
		t.Fatal(err)
	}

	defer f.Close()
	head, err := f.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	var check gozzard.AuditCheck
	tasks := map[string]bool{}
	for {
		page, err := f.AuditAfter(t.Context(), check.Head.Seq, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page {
			if err := check.Follow(&page[i]); err != nil {
				t.Fatal(err)
			}
			tasks[page[i].TaskID] = true
		}
		if len(page) == 0 {
			break
		}
	}

	if err := check.End(head); err != nil {
		t.Fatal(err)
	}

	return tasks
}

// TestTR1KilledServer kills the server again and again while it accepts tasks. Every acknowledged task is in the audit,
// and its chain is complete.
func TestTR1KilledServer(t *testing.T) {
	s := ft.StartServer(t, "")
	kills, acked := min(3**scale, 20), 0
	for range kills {
		var mu sync.Mutex
		var ids []string
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					ans, err := s.Try("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"},
						"op_type": 1, "hosts": []ft.J{ft.Host(1)}})
					var d struct {
						ID string `json:"task_id"`
					}
					if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &d) != nil {
						continue // the server is down or stopping
					}
					mu.Lock()
					ids = append(ids, d.ID)
					mu.Unlock()
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		s.Kill(syscall.SIGKILL)
		close(stop)
		wg.Wait()
		tasks := auditedTasks(t, s.Data)
		for _, id := range ids {
			if !tasks[id] {
				t.Errorf("task %s was acknowledged and is not in the audit", id)
			}
		}
		acked += len(ids)
		s.Again()
		s.AwaitReady()
	}

	fmt.Printf("threat TR1: server killed %d times, %d acknowledged tasks, all in a whole audit\n", kills, acked)

	if acked == 0 {
		t.Error("nothing was acknowledged")
	}
}

// TestTR2HostsOwnRecord: the host can show the signed commands that it received, and their results.
func TestTR2HostsOwnRecord(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	dir := t.TempDir()
	agent := s.StartAgentIn(t, 1, dir, "")
	startAll(t, s.API, daemons(t, "gzproof", 2), ft.J{})
	agent.Kill(syscall.SIGTERM)
	<-agent.Done()
	b, err := os.ReadFile(filepath.Join(dir, "acts.log"))
	if err != nil {
		t.Fatal(err)
	}

	ring, err := signing.OpenKeyRing(dir, nil)
	if err != nil {
		t.Fatal(err)
	}

	id, err := os.ReadFile(filepath.Join(dir, "agent-id"))
	if err != nil {
		t.Fatal(err)
	}

	signed, ran := map[string]bool{}, 0
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var l struct {
			Kind, Key, Op, Code string
			Envelope            []byte
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch l.Kind {
		case "told":
			payload, err := ring.Open(gozzard.AgentID(bytes.TrimSpace(id)), l.Envelope)
			if err != nil || l.Key != ring.Key().ID().String() {
				t.Fatalf("the envelope cannot be proven: key %s, %v", l.Key, err)
			}
			cmd, err := wire.DecodeCommand(payload)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cmd.Ops {
				signed[cmd.Ops[i].ID.String()] = true
			}
		case "ran":
			if ran++; !signed[l.Op] || l.Code == "" {
				t.Errorf("what was run was not asked for in a signed command: %s", line)
			}
		}
	}

	if ran == 0 {
		t.Fatalf("nothing was noted in %s", b)
	}
}
