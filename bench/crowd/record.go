//go:build linux

package crowd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/sim"
)

// CopyProcesses gives the other hosts of n the registered processes of the first one. No server runs: to register them one by
// one would take longer than everything else.
func CopyProcesses(ctx context.Context, store *sqlstore.Store, n int) error {
	var known []record.Process
	for p, err := range store.Processes(ctx, nil) {
		if err != nil {
			return err
		}
		known = append(known, p)
	}

	for i := range known {
		t := record.NewTask{Task: gozzard.Task{At: time.Now(), Caller: gozzard.Caller{App: "bench"}},
			Audit: gozzard.AuditRow{At: time.Now(), Caller: gozzard.Caller{App: "bench"}}}
		for host := 1; host < n; host++ {
			p := known[i]
			p.ID.Agent = sim.AgentID(host)
			t.Register = append(t.Register, p)
		}
		if _, err := store.Accept(ctx, &t); err != nil {
			return fmt.Errorf("cannot copy the registered processes: %w", err)
		}
	}
	return nil
}

// Template keeps the state of the first host in a folder, for the other hosts to begin with.
func Template(of, folder string) error {
	err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(of)), os.Chmod(folder, 0o700))
	if err != nil {
		return fmt.Errorf("cannot copy the state of the first host: %w", err)
	}
	return nil
}

// Token writes a token for so many hosts into a file.
func (c *Caller) Token(ctx context.Context, uses int, file string) error {
	text, err := c.Call(ctx, http.MethodPost, "/api/v1/enrol/tokens", client.EnrolTokenRequest{TTL: "1h", Uses: uses})
	if err != nil {
		return err
	}
	var made client.EnrolToken
	if err := json.Unmarshal(text, &made); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(made.Token), 0o600)
}
