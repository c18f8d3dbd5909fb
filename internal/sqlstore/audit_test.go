package sqlstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// follow verifies an audit as `gozzard audit verify` does.
func follow(t *testing.T, s control.AuditStore) (gozzard.AuditCheck, error) {
	t.Helper()
	var check gozzard.AuditCheck
	head, err := s.AuditHead(t.Context())
	if err != nil {
		return check, err
	}

	for {
		page, err := s.AuditAfter(t.Context(), check.Head.Seq, 100)
		if err != nil {
			return check, err
		}
		for i := range page {
			if err := check.Follow(&page[i]); err != nil {
				return check, err
			}
		}
		if len(page) == 0 {
			return check, check.End(head)
		}
	}
}

// recorded makes a record with some tasks and closes it. It returns its path.
func recorded(t *testing.T, tasks int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gozzard.db")
	s := openSQLite(t, path, sqlstore.Options{})

	for range tasks {
		if _, err := s.Accept(t.Context(), benchTask(2)); err != nil {
			t.Fatal(err)
		}
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	return path
}

// TestTR1AuditChainFindsChanges changes the audit directly in the database: every column, and rows at every position.
func TestTR1AuditChainFindsChanges(t *testing.T) {
	changes := map[string]string{
		"first row removed":  `DELETE FROM audit WHERE seq = 1`,
		"middle row removed": `DELETE FROM audit WHERE seq = 4`,
		"last row removed":   `DELETE FROM audit WHERE seq = 8`,
		"all rows removed":   `DELETE FROM audit`,
		"two rows exchanged": `UPDATE audit SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END
			WHERE seq IN (3, 4); UPDATE audit SET seq = -seq WHERE seq < 0`,
		"row added": `CREATE TABLE t AS SELECT * FROM audit WHERE seq = 8; UPDATE t SET seq = 9;
			INSERT INTO audit SELECT * FROM t`,
		"older rule": `UPDATE audit SET rule = 1, door = '', source = '', request_id = '', accounts = '', content = x'',
			outcome = '', ref = 0, events = 0 WHERE seq = 8`,
		"unknown rule":        `UPDATE audit SET rule = 3 WHERE seq = 8`,
		"head removed":        `DELETE FROM audit_head`,
		"head and last moved": `DELETE FROM audit WHERE seq = 8; UPDATE audit_head SET seq = 7`,
	}
	for _, column := range []string{"app", "caller", "act", "task_id", "door", "source", "request_id", "accounts",
		"outcome"} {
		changes[column] = `UPDATE audit SET ` + column + ` = 'another' WHERE seq = 5`
	}

	for _, column := range []string{"at", "targets", "ref", "events"} {
		changes[column] = `UPDATE audit SET ` + column + ` = ` + column + ` + 1 WHERE seq = 8`
	}

	for _, column := range []string{"request_hash", "hosts_hash", "content", "hash"} {
		changes[column] = `UPDATE audit SET ` + column +
			` = x'0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20' WHERE seq = 1`
		changes[column+" emptied"] = `UPDATE audit SET ` + column + ` = x'' WHERE seq = 2`
	}

	changes["asserted"] = `UPDATE audit SET asserted = NOT asserted WHERE seq = 3`
	unchanged := filepath.Dir(recorded(t, 8))
	if err := changedAudit(t, unchanged, `SELECT 1`); err != nil {
		t.Fatalf("a copy without a change: %v", err)
	}
	for name, change := range changes {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if changedAudit(t, unchanged, change) == nil {
				t.Fatal("not found")
			}
		})
	}
}

// changedAudit copies a record, changes the copy and follows its audit.
func changedAudit(t *testing.T, record, change string) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(record)); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, "gozzard.db")
	raw(t, path, change)
	f, err := sqlstore.OpenAuditFile(t.Context(), path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()

	_, err = follow(t, f)
	return err
}

// TestTR1RecalculatedChainDiffersFromANotedHead: the owner of the database can compute the whole chain again after a
// change. Comparing with a head that was noted elsewhere finds that.
func TestTR1RecalculatedChainDiffersFromANotedHead(t *testing.T) {
	path := recorded(t, 5)
	s := openSQLite(t, path, sqlstore.Options{})
	before, err := follow(t, s)
	if err != nil || before.Rows != 5 {
		t.Fatal(before, err)
	}

	page, err := s.AuditAfter(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}

	var prev gozzard.AuditHash
	for i := range page {
		page[i].Caller.User = "mallory"
		prev = page[i].Chain(prev)
	}

	if prev == before.Head.Hash {
		t.Fatal("another history has the same head")
	}
}

// dropAudit15 removes what migration 00015 and later ones added.
const dropAudit15 = `DROP TABLE IF EXISTS quotas; DROP TABLE IF EXISTS signing_key; DROP TABLE IF EXISTS authority; DROP TABLE IF EXISTS events; DROP TABLE IF EXISTS event_sources; DROP TABLE IF EXISTS event_marks;
	DELETE FROM counters WHERE name IN ('event', 'event_source', 'events_removed');
	DROP TABLE IF EXISTS relays; DROP TABLE IF EXISTS servers; DROP TABLE IF EXISTS leases; DROP TABLE IF EXISTS versions;
	DROP TABLE IF EXISTS installation; DROP TABLE IF EXISTS marks; DROP TABLE IF EXISTS definition_bytes; DROP TABLE IF EXISTS host_generations; DROP TABLE IF EXISTS member_authorities; DROP TABLE IF EXISTS requests;
	ALTER TABLE user_tokens DROP COLUMN opened_by; DELETE FROM counters WHERE name IN ('request', 'compatible_at', 'compatible_from', 'restore_mark');
	DROP INDEX processes_by_former; ALTER TABLE processes DROP COLUMN offer_task;
	ALTER TABLE processes DROP COLUMN offer_idx; ALTER TABLE processes DROP COLUMN former;
	ALTER TABLE processes DROP COLUMN former_labels; ALTER TABLE processes DROP COLUMN former_spec;
	DROP INDEX audit_by_ref; ALTER TABLE audit DROP COLUMN rule; ALTER TABLE audit DROP COLUMN door;
	ALTER TABLE audit DROP COLUMN source; ALTER TABLE audit DROP COLUMN request_id; ALTER TABLE audit DROP COLUMN accounts;
	ALTER TABLE audit DROP COLUMN outcome; ALTER TABLE audit DROP COLUMN ref; ALTER TABLE audit DROP COLUMN events;
	ALTER TABLE audit DROP COLUMN content; ALTER TABLE tasks DROP COLUMN unsettled; DROP TABLE IF EXISTS audit_texts;
	DROP TABLE IF EXISTS audit_exports; ALTER TABLE businesses DROP COLUMN left_out; ALTER TABLE services DROP COLUMN host_id;
	ALTER TABLE sets DROP COLUMN attributes; ALTER TABLE modules DROP COLUMN attributes; ALTER TABLE services DROP COLUMN host_attributes;
	DROP TABLE IF EXISTS config_templates; DROP TABLE IF EXISTS config_versions; DROP TABLE IF EXISTS config_bindings; DROP TABLE IF EXISTS config_texts;
	DROP TABLE IF EXISTS config_instances; DROP TABLE IF EXISTS config_snapshots; DROP TABLE IF EXISTS job_results; DROP TABLE IF EXISTS file_contents; DELETE FROM counters WHERE name LIKE 'config_%';
	DROP TABLE IF EXISTS notify_receivers; DROP TABLE IF EXISTS notify_subscriptions; DROP TABLE IF EXISTS notify_positions; DROP TABLE IF EXISTS notify_alerts;
	DROP TABLE IF EXISTS notify_lost; DROP TABLE IF EXISTS notify_messages; DELETE FROM counters WHERE name = 'notification';
	ALTER TABLE jobs DROP COLUMN work; ALTER TABLE jobs DROP COLUMN choice;
	ALTER TABLE tasks DROP COLUMN trace; ALTER TABLE jobs DROP COLUMN trace;
	DELETE FROM schema_version WHERE version_id >= 15`

func TestAuditOfAnOlderRecordIsChained(t *testing.T) {
	path := recorded(t, 3)
	// Remove what this and later versions of the schema added.
	raw(t, path, dropAudit15, `ALTER TABLE enrol_agents DROP COLUMN restored; DELETE
		FROM counters WHERE name IN ('restored', 'roll');
		DROP TABLE releases; DROP TABLE rolls; DROP TABLE roll_hosts; DROP TABLE host_protocols;
		ALTER TABLE items DROP COLUMN adopt; ALTER TABLE items DROP COLUMN account;
		ALTER TABLE apps DROP COLUMN unknown_users; ALTER TABLE apps DROP COLUMN disabled;
		ALTER TABLE apps DROP COLUMN known_by; ALTER TABLE users DROP COLUMN second_factor;
		ALTER TABLE user_tokens DROP COLUMN kind; ALTER TABLE user_tokens DROP COLUMN for_app;
		ALTER TABLE user_tokens DROP COLUMN member_of; DROP TABLE grant_groups; DROP TABLE deleted_users;
		ALTER TABLE audit DROP COLUMN hash; ALTER TABLE audit DROP COLUMN hosts_hash; DROP TABLE audit_head; DELETE
		FROM schema_version WHERE version_id >= 6`)

	if _, err := sqlstore.OpenAuditFile(t.Context(), path); err == nil {
		t.Fatal("a record without a chain was accepted")
	}

	s := openSQLite(t, path, sqlstore.Options{})
	if _, err := s.Accept(t.Context(), benchTask(1)); err != nil {
		t.Fatal(err)
	}

	check, err := follow(t, s)
	if err != nil || check.Rows != 4 {
		t.Fatalf("%d rows: %v", check.Rows, err)
	}
}

// recordedByRule1 makes a record with some tasks as the version before migration 00015 wrote it. It returns its path and
// its newest row.
func recordedByRule1(t *testing.T, tasks int) (path string, head gozzard.AuditHead) {
	t.Helper()
	path = recorded(t, tasks)
	s := openSQLite(t, path, sqlstore.Options{})
	page, err := s.AuditAfter(t.Context(), 0, tasks+1)
	if err != nil || len(page) != tasks {
		t.Fatal(len(page), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	raw(t, path, dropAudit15)
	for i := range page {
		old := gozzard.AuditRow{Seq: page[i].Seq, At: page[i].At, Caller: page[i].Caller, Act: page[i].Act,
			TaskID: page[i].TaskID, RequestHash: page[i].RequestHash, Targets: page[i].Targets,
			HostsHash: page[i].HostsHash, Legacy: true}
		head = gozzard.AuditHead{Seq: old.Seq, Hash: old.Chain(head.Hash)}
		raw(t, path, fmt.Sprintf(`UPDATE audit SET hash = x'%s' WHERE seq = %d; UPDATE audit_head SET hash = x'%s'`,
			head.Hash, old.Seq, head.Hash))
	}

	return path, head
}

// TestAuditFileOfAnOlderRecord reads the audit of a file that no server of this version has opened, such as the record
// in an older backup.
func TestAuditFileOfAnOlderRecord(t *testing.T) {
	path, head := recordedByRule1(t, 3)
	if err := sqlstore.Verify(t.Context(), path, head); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Verify(t.Context(), path, gozzard.AuditHead{Seq: 4}); err == nil {
		t.Error("another head was accepted")
	}

	f, err := sqlstore.OpenAuditFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()

	if check, err := follow(t, f); err != nil || check.Rows != 3 || check.Head != head {
		t.Errorf("%d rows to %+v: %v", check.Rows, check.Head, err)
	}
	found, _, err := f.FindAudit(t.Context(), gozzard.AuditFilter{}, 10)
	if err != nil || len(found) != 3 || !found[2].Legacy || !found[2].Plain() {
		t.Errorf("found %+v: %v", found, err)
	}
	if found, _, err := f.FindAudit(t.Context(), gozzard.AuditFilter{Host: "10.0.0.1"}, 10); err != nil || len(found) > 0 {
		t.Errorf("a record without lists of hosts: found %+v: %v", found, err)
	}

	row, err := f.AuditRow(t.Context(), 2)
	if err != nil || row.Seq != 2 || row.TaskID == "" || row.Result != "" {
		t.Errorf("row %+v: %v", row, err)
	}
	if _, err := f.AuditText(t.Context(), row.HostsHash); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Errorf("a list of hosts: %v", err)
	}

	// A change is found as in a new record.
	raw(t, path, `UPDATE audit SET act = 'x' WHERE seq = 2`)
	if err := sqlstore.Verify(t.Context(), path, head); err == nil {
		t.Error("a changed row was accepted")
	}
}

// TestTR1OldAndNewRowsInOneChain: a record whose rows were chained by rule 1 is continued by rule 2, and stays
// verifiable from its first row. A change of an old row is still found.
func TestTR1OldAndNewRowsInOneChain(t *testing.T) {
	path, _ := recordedByRule1(t, 3)
	s := openSQLite(t, path, sqlstore.Options{})
	if _, err := s.Accept(t.Context(), benchTask(1)); err != nil {
		t.Fatal(err)
	}
	if check, err := follow(t, s); err != nil || check.Rows != 4 {
		t.Fatalf("%d rows: %v", check.Rows, err)
	}
	if page, err := s.AuditAfter(t.Context(), 0, 10); err != nil || !page[2].Legacy || page[3].Legacy {
		t.Fatalf("the rules are not kept apart: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	for _, change := range []string{`UPDATE audit SET act = 'x' WHERE seq = 2`, `UPDATE audit SET source = 'x' WHERE seq = 2`,
		`UPDATE audit SET rule = 2, content = zeroblob(32) WHERE seq = 2`} {
		raw(t, path, `CREATE TABLE kept AS SELECT * FROM audit`, change)
		f, err := sqlstore.OpenAuditFile(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := follow(t, f); err == nil {
			t.Errorf("%s: not found", change)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		raw(t, path, `DELETE FROM audit; INSERT INTO audit SELECT * FROM kept; DROP TABLE kept`)
	}
}

// TestTT6DamagedDatabaseIsRefused: the server, and the tool that reads the audit, reject a damaged database.
func TestTT6DamagedDatabaseIsRefused(t *testing.T) {
	path := recorded(t, 200)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	copy(b[len(b)/2/4096*4096:], bytes.Repeat([]byte{0xA5}, 4096))

	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{}); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Fatalf("server: %v", err)
	}

	if _, err := sqlstore.OpenAuditFile(t.Context(), path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("audit: %v", err)
	}
}
