package sqlstore_test

import (
	"crypto/sha256"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestTR1DefinitionsOutliveTheirTask: after a task and its definition are removed, the audit still has the hosts, the
// actions and the definition.
func TestTR1DefinitionsOutliveTheirTask(t *testing.T) {
	s := openSQLite(t, filepath.Join(t.TempDir(), "gozzard.db"), sqlstore.Options{})
	n := benchTask(300)
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "web", User: "shop"}})
	for i := range n.Attempts {
		n.Attempts[i].State, n.Attempts[i].Spec = gozzard.AttemptOK, spec
		n.Attempts[i].Outcome = gozzard.Outcome{Code: gozzard.CodeOK}
	}
	n.Register = nil
	n.Audit.SetHosts(gozzard.HostLines(n.Attempts))
	if _, err := s.Accept(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if pruned, err := s.Prune(t.Context(), n.Task.At.Add(time.Hour), 10); err != nil || pruned != 1 {
		t.Fatal(pruned, err)
	}

	row, err := s.AuditRow(t.Context(), int64(n.Task.Seq))
	if err != nil || row.Accounts != "shop" || row.Result != "ok=300" {
		t.Fatalf("%+v: %v", row, err)
	}
	for what, digest := range map[string][32]byte{"hosts": row.HostsHash, "content": row.Content,
		"definition": sha256.Sum256(spec)} {
		if text, err := s.AuditText(t.Context(), digest); err != nil || sha256.Sum256(text) != digest {
			t.Errorf("%s: %v", what, err)
		}
	}

	found, next, err := s.FindAudit(t.Context(), gozzard.AuditFilter{Host: n.Attempts[7].Addr.IP.String(), Account: "shop",
		Newest: true}, 10)
	if err != nil || len(found) != 1 || next != 0 {
		t.Errorf("found %d, next %d: %v", len(found), next, err)
	}
}
