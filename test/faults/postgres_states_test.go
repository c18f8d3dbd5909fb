//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/pgtest"
)

// pgFleet is a server with its record in PostgreSQL, and an agent.
type pgFleet struct {
	*ft.Server
	t  *testing.T
	pg *pgtest.Server
}

// startPgFleet starts a fleet. The role of the server is no superuser, so the limits of PostgreSQL hold for it.
func startPgFleet(t *testing.T, options string) *pgFleet {
	t.Helper()
	pg := pgtest.Start(t, "on")
	pg.Exec("postgres", "CREATE ROLE fleet LOGIN")
	pg.Exec("postgres", "CREATE DATABASE fleet OWNER fleet TEMPLATE template0 "+options)
	f := &pgFleet{t: t, pg: pg, Server: ft.StartServer(t, "", "--record", pg.URLAs("fleet", "fleet"))}
	f.StartAgent(t, 1, "")
	return f
}

// disconnect ends all sessions of the server in the database, as a failover does.
func (f *pgFleet) disconnect() {
	f.t.Helper()
	f.pg.Exec("postgres", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'fleet'")
}

// register records a new definition.
func (f *pgFleet) register(name string) (ft.Answer, error) {
	return f.Try("register_proc_info", ft.J{"meta": ft.J{"namespace": "gse", "name": name},
		"spec": ft.J{"identity": ft.J{"proc_name": "d", "setup_path": "/tmp", "pid_path": "/tmp/d.pid", "user": "root"},
			"control": ft.J{"start_cmd": "./d"}}, "hosts": []ft.J{ft.Host(1)}})
}

// awaitRefusal calls until a write is refused with some words.
func (f *pgFleet) awaitRefusal(words string) {
	f.t.Helper()
	n, last := 0, ""
	ft.Until(f.t, time.Minute, func() string { return fmt.Sprintf("no refusal with %q: %s", words, last) }, func() bool {
		n++
		ans, err := f.register(fmt.Sprint("refused", n))
		last = fmt.Sprint(ans.Raw, err)
		return err == nil && ans.Code != 0 && strings.Contains(ans.Message, words)
	})
}

// awaitService waits until a write is accepted.
func (f *pgFleet) awaitService() {
	f.t.Helper()
	last := ""
	ft.Until(f.t, 2*time.Minute, func() string { return "the service does not come back: " + last }, func() bool {
		ans, err := f.register("back")
		last = fmt.Sprint(ans.Raw, err)
		return err == nil && ans.Code == 0
	})
}

// V17: the database becomes read-only under load, as a server does that was made a standby. Calls are refused in clear
// words, and the service comes back when the database accepts changes again, although no connection was ended then.
func TestV17PostgresReadOnly(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPgFleet(t, "")
	l := ledger.New(t, f.API)
	stop := l.Load(6, 1, 2000**scale)
	time.Sleep(500 * time.Millisecond)

	f.pg.Exec("postgres", "ALTER DATABASE fleet SET default_transaction_read_only = on")
	f.disconnect()
	f.awaitRefusal("the database accepts no changes: it is a standby, or was set to read-only")
	if ans, err := f.Try("sync_proc_status", ft.J{"meta": ft.J{"namespace": "gse"}, "page": ft.J{"start": 0, "limit": 1}}); err != nil ||
		ans.Code != 0 {
		t.Errorf("a call that changes nothing: %s, %v", ans.Raw, err)
	}

	f.pg.Exec("postgres", "ALTER DATABASE fleet RESET default_transaction_read_only")
	f.awaitService()
	time.Sleep(500 * time.Millisecond)
	stop()
	l.Afterwards(12, 1)
	l.Judge("V17 read-only", ledger.Floor{OK: 20, Percent: 25})
}

// V17: PostgreSQL has no connection left, and then all connections of the server are busy.
func TestV17PostgresNoConnections(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPgFleet(t, "")
	l := ledger.New(t, f.API)
	stop := l.Load(6, 1, 2000**scale)
	time.Sleep(500 * time.Millisecond)

	// No connection is left. A limit of 0 for the role is what max_connections is for all.
	f.pg.Exec("postgres", "ALTER ROLE fleet CONNECTION LIMIT 0")
	f.disconnect()
	f.awaitRefusal("the database accepts no more connections")
	f.pg.Exec("postgres", "ALTER ROLE fleet CONNECTION LIMIT -1")
	f.awaitService()

	// Another session locks a table, so that every connection of the server waits. Every caller gets an answer.
	lock := exec.Command("psql", "-h", f.pg.Dir, "-U", pgtest.User, "-d", "fleet", "-c",
		"BEGIN; LOCK TABLE tasks, processes, hosts IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(20)")
	if err := lock.Start(); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	go func() { locked <- lock.Wait() }()
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for i := range 60 {
		wg.Go(func() {
			ans, err := f.register(fmt.Sprint("crowd", i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("caller %d got no answer: %v", i, err)
			case ans.Code != 0 && !strings.Contains(ans.Message, "database"):
				t.Errorf("caller %d was refused without a reason: %s", i, ans.Raw)
			default:
				answers[fmt.Sprint(ans.Code)]++
			}
		})
	}
	wg.Wait()
	if err := <-locked; err != nil {
		t.Error(err)
	}

	f.awaitService()
	stop()
	l.Afterwards(12, 1)
	fmt.Printf("fault V17: 60 callers while tables were locked: answers by code %v\n", answers)
	l.Judge("V17 no connections", ledger.Floor{OK: 20, Percent: 25})
}

// V17: the disk of the database is full. Calls are refused, and the service comes back when there is space.
func TestV17PostgresDiskFull(t *testing.T) {
	t.Parallel() // it mostly waits
	dir, _ := ext4(t, 96)
	space := filepath.Join(dir, "space")
	pg := pgtest.Start(t, "on")
	if err := os.Mkdir(space, 0o700); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(pg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	owner := st.Sys().(*syscall.Stat_t)
	for _, path := range []string{dir, filepath.Dir(dir)} { // PostgreSQL runs as another account
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(space, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	pg.Exec("postgres", "CREATE ROLE fleet LOGIN")
	pg.Exec("postgres", "CREATE TABLESPACE small OWNER fleet LOCATION '"+space+"'")
	pg.Exec("postgres", "CREATE DATABASE fleet OWNER fleet TABLESPACE small")
	f := &pgFleet{t: t, pg: pg, Server: ft.StartServer(t, "", "--record", pg.URLAs("fleet", "fleet"))}
	f.StartAgent(t, 1, "")

	// Fill the disk under load.
	l := ledger.New(t, f.API)
	stop := l.Load(6, 1, 4000**scale)
	time.Sleep(500 * time.Millisecond)
	hog := filepath.Join(dir, "hog")
	fillDisk(t, hog)
	f.awaitRefusal("the disk of the database is full")

	// Free it.
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	f.awaitService()
	stop()
	l.Afterwards(12, 1)
	l.Judge("V17 full disk", ledger.Floor{OK: 20, Percent: 25})
}

// V17: PostgreSQL is frozen: its connections last, and nothing answers. After a short time everything goes on. After a long
// time callers are refused.
func TestV17PostgresFrozen(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPgFleet(t, "")
	l := ledger.New(t, f.API)
	stop := l.Load(6, 1, 2000**scale)
	t.Cleanup(f.pg.Thaw) // or it would not end

	for range 2 {
		time.Sleep(500 * time.Millisecond)
		f.pg.Freeze()
		time.Sleep(3 * time.Second)
		f.pg.Thaw()
		f.awaitService()
	}

	f.pg.Freeze()
	refused := f.refusedWrites(8)
	if status, _ := readiness(t, f.API); status == 200 {
		t.Error("/readyz says that the server is ready")
	}
	f.pg.Thaw()
	if n := <-refused; n == 0 {
		t.Error("no write was refused while the database did not answer")
	}
	f.awaitService()
	if status, detail := readiness(t, f.API); status != 200 {
		t.Errorf("/readyz afterwards: %d %s", status, detail)
	}
	stop()
	l.Afterwards(12, 1)
	l.Judge("V17 frozen", ledger.Floor{OK: 20, Percent: 25})
}

// refusedWrites sends writes that wait behind each other, and returns when one is refused because the database is silent. It
// counts those that were refused; the others are answered when the database is back.
func (f *pgFleet) refusedWrites(n int) <-chan int {
	f.t.Helper()
	total, first := make(chan int, 1), make(chan struct{}, n)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for i := range n {
		wg.Go(func() {
			out, failed := tool(f.t, "user", "create", fmt.Sprint("late", i), "--credentials",
				filepath.Join(f.Data, "credentials.json"))
			if failed && strings.Contains(out, "the database has not answered for 30s: nothing was changed") {
				refused.Add(1)
				first <- struct{}{}
			}
		})
	}
	go func() { wg.Wait(); total <- int(refused.Load()) }()

	select {
	case <-first:
	case <-time.After(2 * time.Minute):
		f.t.Error("no write was refused")
	}
	return total
}

// V17: a server refuses a record that a newer version of the program has changed, and changes nothing.
func TestV17OlderThanTheSchema(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := pgtest.Start(t, "off")
	pg.Exec("postgres", "CREATE DATABASE fleet")
	s := ft.StartServer(t, "", "--record", pg.URL("fleet"))
	s.Kill(syscall.SIGTERM)
	marks := pg.Exec("fleet", "SELECT mark FROM marks")
	pg.Exec("fleet", "INSERT INTO schema_version (version_id, is_applied) VALUES (9999, TRUE)")

	mentions(t, refusedStart(t, s.Program), "schema version 9999", "use a newer version of gozzard; nothing was changed")
	if got := pg.Exec("fleet", "SELECT mark FROM marks"); got != marks {
		t.Errorf("the record was changed: mark %s, before %s", got, marks)
	}
	pg.Exec("fleet", "DELETE FROM schema_version WHERE version_id = 9999")
	s.Again()
	s.AwaitReady()
}
