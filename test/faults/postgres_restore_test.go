//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/pgtest"
)

// keeperSQL is the text of the documentation that makes the role and the database of a server, for a role "keeper".
func keeperSQL(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/backup-and-restore.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(b)
	if found == nil {
		t.Fatal("the documentation has no SQL")
	}
	return strings.ReplaceAll(string(found[1]), "gozzard", "keeper")
}

// startKeeper starts a PostgreSQL server with the role and the database of the documentation.
func startKeeper(t *testing.T) *pgtest.Server {
	t.Helper()
	pg := pgtest.Start(t, "off")
	pg.Script(keeperSQL(t))
	return pg
}

// V17: a server runs with exactly the role of the documentation, and that role can do nothing else.
func TestV17LeastPrivilege(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := startKeeper(t)
	s := ft.StartServer(t, "", "--record", pg.URLAs("keeper", "keeper"))
	s.StartAgent(t, 1, "")
	l := ledger.New(t, s.API)
	l.Afterwards(8, 1)
	s.Kill(syscall.SIGTERM)
	s.Again()
	s.AwaitReady()
	l.Judge("V17 least privilege", ledger.Floor{OK: 8, Percent: 100})

	// What someone with the password of the role could try.
	pg.Exec("postgres", "CREATE DATABASE other; ")
	pg.Exec("postgres", "CREATE ROLE stranger LOGIN")
	for _, try := range []struct{ role, database, text string }{
		{"keeper", "keeper", "CREATE TABLE public.x (n INT)"},
		{"keeper", "keeper", "CREATE SCHEMA more"},
		{"keeper", "keeper", "CREATE TEMPORARY TABLE x (n INT)"},
		{"keeper", "keeper", "CREATE DATABASE more"},
		{"keeper", "keeper", "CREATE ROLE more"},
		{"keeper", "keeper", "ALTER ROLE keeper SUPERUSER"},
		{"keeper", "keeper", "SELECT rolpassword FROM pg_authid"},
		{"keeper", "keeper", "SELECT pg_read_file('PG_VERSION')"},
		{"keeper", "keeper", "COPY keeper.tasks TO PROGRAM 'true'"},
		{"keeper", "keeper", "ALTER DATABASE keeper RENAME TO mine"},
		{"stranger", "keeper", "SELECT 1"},
	} {
		if out, err := pg.TryAs(try.role, try.database, try.text); err == nil ||
			!strings.Contains(out, "permission denied") && !strings.Contains(out, "must be") {
			t.Errorf("%s: %s: %s, %v", try.role, try.text, out, err)
		}
	}
}

// V17: a database that was restored from a dump. The server refuses it until the record is marked, and then behaves as after
// `gozzard backup restore`: hosts and tokens of the copy are not trusted.
func TestV17RestoredDump(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := startKeeper(t)
	record := pg.URLAs("keeper", "keeper")
	f := startPlain(t, "127.0.0.1", "--enrol", "--record", record)
	f.join(t)
	dir := t.TempDir()
	unused := filepath.Join(dir, "token")
	if err := os.WriteFile(unused, []byte(f.gozzard(t, "token", "create")), 0o600); err != nil {
		t.Fatal(err)
	}

	// Copy the database while the server runs. Something happens after that.
	dump := filepath.Join(pg.Dir, "keeper.dump")
	pg.Tool("pg_dump", "--format=custom", "--file="+dump, "keeper")
	f.gozzard(t, "user", "create", "later")
	if out, err := f.try("record", "mark-restored", "--data", f.data, "--record", record); err == nil ||
		!strings.Contains(err.Error(), "another server uses this record") {
		t.Errorf("the record of a server that runs: %s, %v", out, err)
	}
	f.server.Kill(syscall.SIGTERM)
	pg.Tool("pg_restore", "--clean", "--if-exists", "--create", "--exit-on-error", "--dbname=postgres", dump)

	// The server notices it, as often as it is started.
	for range 2 {
		mentions(t, refusedStart(t, f.server), "was set back", "gozzard record mark-restored --data "+f.data)
	}

	// Mark it. Only the record that belongs to the folder can be marked.
	if out, err := f.try("record", "mark-restored", "--data", t.TempDir(), "--record", record); err == nil {
		t.Errorf("another folder: %s", out)
	}
	out := f.gozzard(t, "record", "mark-restored", "--data", f.data, "--record", record)
	mentions(t, out, "1 host(s) wait", "of epoch 2", "gozzard hosts confirm-restore")

	before := f.agent.Sessions()
	f.server.Again()
	ft.Until(t, time.Minute, f.server.Output, func() bool {
		out := f.server.Output()
		return strings.Contains(out, `"rule":"restored"`) && strings.Count(out, `"server started"`) > 1
	})
	if out := f.gozzard(t, "hosts"); !regexp.MustCompile(`(?m)^0:127\.0\.0\.1 +no .* restored$`).MatchString(out) ||
		f.agent.Sessions() != before {
		t.Errorf("the host is admitted before the admin has looked: %s", out)
	}
	if out, err := f.try("agent", "join", "--server", f.cred.URL, "--token-file", unused, "--data",
		filepath.Join(dir, "new"), "--ip", "127.0.0.9"); err == nil {
		t.Errorf("a token of before the restore: %s", out)
	}
	if out := f.gozzard(t, "user", "list"); strings.Contains(out, "later") {
		t.Errorf("the dump was not restored: %s", out)
	}

	f.gozzard(t, "hosts", "confirm-restore", "--confirm", "1")
	f.agent.Kill(syscall.SIGTERM) // the agent retries by itself too, but its pauses have grown by now
	f.agent.Again()
	ft.Until(t, time.Minute, f.agent.Output, func() bool { return f.agent.Sessions() > before })
	mentions(t, f.gozzard(t, "audit", "list"), "restore:confirm:", " restore:2")
	f.server.Kill(syscall.SIGTERM)
	f.server.Again()
	ft.Until(t, time.Minute, f.server.Output, func() bool { return strings.Count(f.server.Output(), `"server started"`) > 2 })
}

// V17: the database is replaced by an older copy while the server runs. The server ends and does not start on it. With the
// newest state it goes on as if nothing had been.
func TestV17SetBackUnderServer(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startPgFleet(t, "")
	dump := filepath.Join(f.pg.Dir, "fleet.dump")
	f.pg.Tool("pg_dump", "--format=custom", "--file="+dump, "fleet")
	f.pg.Exec("postgres", "CREATE DATABASE older OWNER fleet TEMPLATE template0")
	f.pg.Tool("pg_restore", "--exit-on-error", "--dbname=older", dump)
	l := ledger.New(t, f.API)
	l.Afterwards(4, 1)

	swap := func(from, to string) {
		t.Helper()
		f.pg.Exec("postgres", "ALTER ROLE fleet CONNECTION LIMIT 0")
		f.disconnect()
		ft.Until(t, time.Minute, func() string { return "sessions do not end" }, func() bool {
			return f.pg.Exec("postgres", "SELECT count(*) FROM pg_stat_activity WHERE usename = 'fleet'") == "0"
		})
		f.pg.Exec("postgres", "ALTER DATABASE fleet RENAME TO "+from)
		f.pg.Exec("postgres", "ALTER DATABASE "+to+" RENAME TO fleet")
		f.pg.Exec("postgres", "ALTER ROLE fleet CONNECTION LIMIT -1")
	}

	// The older copy: nothing may be acknowledged on it.
	swap("newest", "older")
	ft.Until(t, time.Minute, f.Output, func() bool {
		if ans, err := f.register("late"); err == nil && ans.Code == 0 {
			t.Fatal("a change of the older copy was acknowledged")
		}
		select {
		case <-f.Done():
			return true
		default:
			return false
		}
	})
	mentions(t, f.Output(), "the record was set back")
	if f.ExitCode() == 0 {
		t.Error("the server ended without an error")
	}
	mentions(t, refusedStart(t, f.Program), "was set back", "Nothing was changed")

	// The newest state.
	swap("older", "newest")
	f.Again()
	f.AwaitReady()
	f.AwaitOnline(t, 1)
	l.Judge("V17 set back", ledger.Floor{OK: 4, Percent: 100})
}

// V17: the password of the database comes from a file. On the command line, where every account can read it, it is used with
// a warning.
func TestV17PasswordFile(t *testing.T) {
	t.Parallel() // it mostly waits
	pg := startKeeper(t)
	pg.Exec("postgres", "ALTER ROLE keeper PASSWORD 'pass-word'")
	hba := filepath.Join(pg.Dir, "data", "pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("local all keeper scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	pg.Exec("postgres", "SELECT pg_reload_conf()")
	file := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(file, []byte("*:*:*:keeper:pass-word\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	const warning = "the command line has the password of the database"
	record := pg.URLAs("keeper", "keeper")
	start := func(env []string, record ...string) string {
		t.Helper()
		p := ft.Start(t, "server", env, append([]string{"server", "--data", t.TempDir(), "--listen", "127.0.0.1:0",
			"--agent-listen", "127.0.0.1:0", "--new-record"}, record...)...)
		ft.Until(t, time.Minute, p.Output, func() bool {
			select {
			case <-p.Done():
				return true
			default:
				return strings.Contains(p.Output(), `"server started"`)
			}
		})
		p.Kill(syscall.SIGTERM)
		if strings.Contains(p.Output(), "pass-word") {
			t.Errorf("the password is in the log: %s", p.Output())
		}
		pg.Exec("keeper", "DROP SCHEMA keeper CASCADE; CREATE SCHEMA keeper AUTHORIZATION keeper") // the next one is new
		return p.Output()
	}

	for name, out := range map[string]string{
		"a file":          start([]string{"PGPASSFILE=" + file}, "--record", record),
		"the variable":    start([]string{"PGPASSWORD=pass-word"}, "--record", record),
		"the environment": start([]string{"GOZZARD_RECORD=" + record + "&password=pass-word"}),
	} {
		if !strings.Contains(out, `"server started"`) || strings.Contains(out, warning) {
			t.Errorf("the password is in %s: %s", name, out)
		}
	}
	if out := start(nil, "--record", record+"&password=pass-word"); !strings.Contains(out, `"server started"`) ||
		!strings.Contains(out, warning) {
		t.Errorf("no warning: %s", out)
	}
	if out := start([]string{"PGPASSFILE=/dev/null"}, "--record", record); strings.Contains(out, `"server started"`) {
		t.Errorf("a server without the password: %s", out)
	}
}
