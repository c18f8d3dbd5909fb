package sqlstore_test

import (
	"database/sql"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
)

// benchBusiness is a new business of n service instances with one process each, in modules of a thousand.
func benchBusiness(n int) topology.Change {
	c := topology.Change{Biz: 2, Name: "蓝鲸", PutSets: []topology.Set{{ID: 1, Name: "管控平台", Env: topology.EnvFormal}}}
	for i := range n {
		module := 1 + i/1000
		if i%1000 == 0 {
			c.PutModules = append(c.PutModules, topology.PlacedModule{Set: 1,
				Module: topology.Module{ID: module, Name: fmt.Sprint("module", module)}})
		}
		host := topology.Host{IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		c.PutServices = append(c.PutServices, topology.PlacedService{Module: module, Service: topology.ServiceInstance{
			ID: i + 1, Name: host.IP.String() + "_gamesvr", Host: host,
			Processes: []topology.Process{{ID: i + 1, Name: "gamesvr", FuncName: "gamesvr", Num: 1,
				Priority: 1, User: "root", WorkPath: "/data/gamesvr", PIDFile: "/data/gamesvr/pid",
				Start: "./start.sh", Stop: "./stop.sh",
				Restart: "./restart.sh", Reload: "./reload.sh", ForceStop: "./kill.sh", Timeout: 60,
				StartCheckSecs: 5}}}})
		c.PutNumbers = append(c.PutNumbers, topology.Numbers{Process: i + 1, Module: module, Alias: "gamesvr",
			HostNum: 1 + i%1000, Per: 1, Count: 1})
	}

	return c
}

func topologyAudit() gozzard.AuditRow {
	return gozzard.AuditRow{At: time.Now(), Caller: gozzard.Caller{App: "bk_bench", User: "admin"},
		Act: "topology:apply"}
}

// benchJob is a job of n tasks with one definition.
func benchJob(n int) (record.Job, []record.JobTask) {
	j := record.Job{Biz: 2, Action: gozzard.ActionStart, Granularity: record.ByBusiness, State: record.JobRunning,
		Started: time.Now()}
	spec := benchTask(1).Attempts[0].Spec
	tasks := make([]record.JobTask, n)
	for i := range tasks {
		tasks[i] = record.JobTask{Process: i + 1, Name: "gamesvr", Set: 1, Module: 1 + i/1000, Local: 1, Inst: i + 1,
			Key:   topology.Key(2, "gamesvr", 1),
			Addr:  gozzard.HostAddr{IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})},
			Group: "biz:2", State: record.JobPending,
			Labels: map[string]string{"bk_process_name": "gamesvr", "bk_process_id": fmt.Sprint(i + 1)}, Spec: spec,
			Info: make([]byte, 1000)}
	}

	return j, tasks
}

// TestHistory: each version leaves a row with the caller and how much changed.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	change := benchBusiness(3)
	audit := topologyAudit()
	if _, err := s.SaveBusiness(t.Context(), change, record.SourceFile, audit); err != nil {
		t.Fatal(err)
	}

	audit.Caller.User = "bob"
	drop := topology.Change{Biz: 2, Base: 1, DropServices: []int{1, 2}, DropNumbers: []int{1}}
	if _, err := s.SaveBusiness(t.Context(), drop, record.SourceCMDB, audit); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveBusiness(t.Context(), drop, record.SourceCMDB,
		audit); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	rows, err := db.Query(`SELECT v.version || ' ' || v.source || ' ' || v.caller || ' +' ||
		put_sets || ',' || put_modules || ',' || put_services || ',' || put_numbers || ' -' ||
		dropped_sets || ',' || dropped_modules || ',' || dropped_services || ',' || dropped_numbers || ' ' || a.act
		FROM business_versions v JOIN audit a ON a.seq = v.audit_seq
		WHERE v.biz = 2 AND v.at = a.at ORDER BY v.version`)
	if err != nil {
		t.Fatal(err)
	}

	defer rows.Close()
	var got []string
	for rows.Next() {
		got = append(got, "")
		if err := rows.Scan(&got[len(got)-1]); err != nil {
			t.Fatal(err)
		}
	}

	want := []string{"1 file admin +1,1,3,3 -0,0,0,0 topology:apply", "2 cmdb bob +0,0,0,0 -0,0,2,1 topology:apply"}
	if err := rows.Err(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("history %q, %v", got, err)
	}
}

// firstSchema removes from a record what later versions of the schema added.
func firstSchema(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()
	rows, err := db.Query(`SELECT name FROM sqlite_master
		WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT IN ('schema_version', 'counters',
		'tasks', 'items', 'attempts', 'specs', 'idempotency', 'garbage', 'audit', 'hosts', 'host_journals',
		'host_addrs', 'processes', 'process_groups')`)
	if err != nil {
		t.Fatal(err)
	}

	texts := []string{`PRAGMA foreign_keys = 0`, dropAudit15}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, `DROP TABLE IF EXISTS `+name)
	}

	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}

	raw(t, path, append(texts, `ALTER TABLE host_journals DROP COLUMN laid`, `ALTER TABLE audit DROP COLUMN hash`,
		`ALTER TABLE audit DROP COLUMN hosts_hash`, `ALTER TABLE items DROP COLUMN adopt`,
		`ALTER TABLE items DROP COLUMN account`,
		`DELETE FROM counters WHERE name <> 'number'`, `DELETE FROM schema_version WHERE version_id > 1`)...)
}

// TestUpgrade: a record of the first schema opens with everything in it, and accepts businesses and jobs.
func TestUpgrade(t *testing.T) {
	path := filled(t)
	firstSchema(t, path)
	s := openSQLite(t, path, sqlstore.Options{})
	for seq := range gozzard.TaskSeq(5) {
		if list, err := s.Attempts(t.Context(), seq+1); err != nil || len(list) != 200 {
			t.Fatalf("task %d has %d attempts, %v", seq+1, len(list), err)
		}
	}

	if _, err := s.SaveBusiness(t.Context(), benchBusiness(1), record.SourceFile, topologyAudit()); err != nil {
		t.Fatal(err)
	}

	j, tasks := benchJob(1)
	if err := s.CreateJob(t.Context(), &j, tasks); err != nil || j.ID != 1 || tasks[0].ID != 1 {
		t.Fatalf("job %d, task %d, %v", j.ID, tasks[0].ID, err)
	}
}

// TestJobsLeaveNothing: after pruning nothing of a job is left, except that its business had one.
func TestJobsLeaveNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s := openSQLite(t, path, sqlstore.Options{})
	for range 3 {
		j, tasks := benchJob(1500)
		j.State, j.Ended = record.JobSucceeded, time.Now()
		if err := s.CreateJob(t.Context(), &j, tasks); err != nil {
			t.Fatal(err)
		}
	}

	if n, err := s.PruneJobs(t.Context(), time.Now().Add(time.Hour), 100); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	defer db.Close()

	for table, want := range map[string]int{"jobs": 0, "job_tasks": 0, "job_details": 0, "job_specs": 0,
		"job_garbage": 0, "job_businesses": 1} {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n != want {
			t.Errorf("%s has %d rows, want %d (%v)", table, n, want, err)
		}
	}
}
