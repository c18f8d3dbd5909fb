//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// tool runs the program and returns what it prints.
func tool(t *testing.T, args ...string) (out string, failed bool) {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), ft.Binary(t), args...).CombinedOutput()
	return string(b), err != nil
}

// refusedStart starts a program that has to end by itself and returns what it printed.
func refusedStart(t *testing.T, p *ft.Program) string {
	t.Helper()
	before := len(p.Output())
	p.Again()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("the program runs on")
	}
	if p.ExitCode() == 0 {
		t.Fatal("the program ended without an error")
	}
	return p.Output()[before:]
}

// mentions checks that a text has all of some parts.
func mentions(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in: %s", p, text)
		}
	}
}

// readiness is the answer of /readyz.
func readiness(t *testing.T, s *ft.API) (status int, detail string) {
	t.Helper()
	res, err := http.Get(s.Cred.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var h struct{ Detail string }
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, h.Detail
}

// K10: a record that is missing or empty beside the keys of a server is not a first start. The server refuses and
// changes nothing. With --new-record it begins again, and callers with credentials.json go on.
func TestK10LostRecordIsNoFirstStart(t *testing.T) {
	ft.FileOnly(t, "it removes the file; TestV16RecordAndFolderBelongTogether uses an empty database")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	s.Kill(syscall.SIGTERM)
	record := filepath.Join(s.Data, "gozzard.db")
	credentials := filepath.Join(s.Data, "credentials.json")
	before, err := os.ReadFile(credentials)
	if err != nil {
		t.Fatal(err)
	}

	// A record without tables is what remains of a young one that lost its log.
	whole, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	bare := append([]byte{}, whole[:100]...)
	copy(bare[28:32], []byte{0, 0, 0, 1}) // its number of pages
	page := make([]byte, 4096)
	copy(page, bare)
	page[100], page[105], page[106] = 13, 16, 0 // an empty table of tables

	refusals := 0
	for _, c := range []struct {
		name    string
		content []byte
	}{{"missing", nil}, {"empty", []byte{}}, {"without tables", page}} { // in this order: something is left in the end
		name, content := c.name, c.content
		if err := os.Remove(record); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if content != nil {
			if err := os.WriteFile(record, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}

		text := refusedStart(t, s.Program)
		mentions(t, text, record+" is missing or empty", "signing.key, join.secret, credentials.json",
			"gozzard server --data "+s.Data+" --new-record", "gozzard backup restore FILE --identity KEYFILE --data ")
		after, err := os.ReadFile(credentials)
		if err != nil || string(after) != string(before) {
			t.Fatalf("%s: the credentials changed: %v", name, err)
		}
		if b, err := os.ReadFile(record); string(b) != string(content) || content != nil && err != nil {
			t.Fatalf("%s: the refused start changed the record to %d bytes, %v", name, len(b), err)
		}
		refusals++
		if out, failed := tool(t, "doctor", "--data", s.Data); !failed || !strings.Contains(out, "--new-record") {
			t.Fatalf("%s: the doctor says: %s", name, out)
		}
	}

	// Insist. The secret in credentials.json stays, and callers that have it go on.
	again := ft.Start(t, "server", nil, "server", "--data", s.Data, "--listen", s.Flag("--listen"), "--agent-listen",
		s.Flag("--agent-listen"), "--new-record")
	s.AwaitReady() // with the credentials of before
	mentions(t, again.Output(), "making a new record", "the same secret", "kept what is left of the lost record")
	if left, _ := filepath.Glob(record + ".lost-*"); len(left) != 1 {
		t.Fatalf("what was left of the record: %v", left)
	}
	t.Logf("fault K10: %d starts refused, 1 with --new-record", refusals)
}

// A server that is started in the data folder of another account, such as by root in that of the packaged unit, leaves nothing
// there which that account cannot use.
func TestK10FolderOfAnotherAccount(t *testing.T) {
	ft.FileOnly(t, "it looks at the files of the record")
	if os.Getuid() != 0 {
		t.Skip("needs root for a folder of another account")
	}
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	s.Kill(syscall.SIGTERM)
	if err := os.Remove(filepath.Join(s.Data, "gozzard.db")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", "daemon", s.Data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	for _, flag := range []string{"--listen=127.0.0.1:0", "--new-record"} {
		p := ft.Start(t, "server", nil, "server", "--data", s.Data, "--listen", "127.0.0.1:0", flag)
		<-p.Done()
		mentions(t, p.Output(), "join.secret belongs to uid ", "but this program runs as uid 0", "Nothing was changed")
	}
	out, err := exec.Command("find", s.Data, "!", "-user", "daemon", "-o", "-name", "gozzard.db").CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("the refused starts left %s, %v", out, err)
	}
}

// K10 for `gozzard dev`.
func TestK10LostRecordOfDev(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	d.Kill(syscall.SIGKILL)
	for _, name := range []string{"gozzard.db", "gozzard.db-wal", "gozzard.db-shm"} {
		if err := os.Remove(filepath.Join(d.Data, name)); err != nil {
			t.Fatal(err)
		}
	}
	mentions(t, refusedStart(t, d.Program), "gozzard dev --data "+d.Data+" --new-record", "signing.key")

	again := ft.Start(t, "dev", nil, "dev", "--data", d.Data, "--listen", d.Flag("--listen"), "--new-record")
	ft.Until(t, time.Minute, again.Output, func() bool {
		ans, err := d.Try("get_agent_status", ft.J{"hosts": []ft.J{ft.Host(1)}})
		return err == nil && ans.Code == 0
	})
}

// A server that is killed anywhere in its first start can be started again.
func TestK10KilledFirstStart(t *testing.T) {
	t.Parallel() // it mostly waits
	for i := range 12 {
		data := t.TempDir()
		p := ft.Start(t, "server", nil, "server", "--data", data, "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0")
		ft.Until(t, time.Minute, p.Output, func() bool {
			if ft.InPostgres(t) {
				pg, name := ft.DatabaseOf(t, data)
				return pg.Exec("postgres", "SELECT count(*) FROM pg_stat_activity WHERE datname = '"+name+"'") != "0"
			}
			_, err := os.Stat(filepath.Join(data, "gozzard.db.lock"))
			return err == nil
		})
		time.Sleep(time.Duration(i*i) * time.Millisecond)
		p.Kill(syscall.SIGKILL)
		p.Again()
		ft.Until(t, time.Minute, p.Output, func() bool { return strings.Contains(p.Output(), "server started") })
		p.Kill(syscall.SIGKILL)
	}
}

// K11: a record that is removed or replaced under a running server. Nothing is acknowledged after that, on any door,
// and the server says so within a second.
func TestK11RecordRemovedUnderServer(t *testing.T) {
	ft.FileOnly(t, "it removes the file; TestV17SetBackUnderServer replaces a database")
	t.Parallel() // it mostly waits
	for name, harm := range map[string]func(t *testing.T, record string){
		"removed": func(t *testing.T, record string) {
			if err := os.Rename(record, record+".away"); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, record string) {
			b, err := os.ReadFile(record)
			if err == nil {
				err = os.WriteFile(record+".new", b, 0o600)
			}
			if err == nil {
				err = os.Rename(record, record+".away")
			}
			if err == nil {
				err = os.Rename(record+".new", record)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"log removed": func(t *testing.T, record string) {
			if err := os.Rename(record+"-wal", record+"-wal.away"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
			s.StartAgent(t, 1, "")
			record := filepath.Join(s.Data, "gozzard.db")
			register := func(n int) (ft.Answer, error) {
				return s.Try("register_proc_info", ft.J{"meta": ft.J{"namespace": "gse", "name": fmt.Sprint("p", n)},
					"spec": ft.J{"identity": ft.J{"proc_name": "d", "setup_path": "/tmp", "pid_path": "/tmp/d.pid", "user": "root"},
						"control": ft.J{"start_cmd": "./d"}}, "hosts": []ft.J{ft.Host(1)}})
			}
			if ans, err := register(0); err != nil || ans.Code != 0 {
				t.Fatalf("before: %s, %v", ans.Raw, err)
			}

			// The first call after it is refused, without any wait.
			harm(t, record)
			refused := 0
			for n := range 5 {
				ans, err := register(n + 1)
				if err != nil || ans.Code == 0 || !strings.Contains(ans.Message, "while the server runs: nothing is recorded") {
					t.Fatalf("call %d after the record was lost: %s, %v", n, ans.Raw, err)
				}
				refused++
			}
			out, failed := tool(t, "app", "create", "another", "--credentials", filepath.Join(s.Data, "credentials.json"))
			if !failed || !strings.Contains(out, "while the server runs: nothing is recorded") {
				t.Fatalf("the native door: %s", out)
			}

			// Everything that watches the server sees it.
			lost := time.Now()
			ft.Until(t, time.Minute, s.Output, func() bool { return strings.Contains(s.Output(), "the record is lost") })
			status, detail := readiness(t, s.API)
			if status != http.StatusServiceUnavailable || !strings.Contains(detail, "while the server runs") {
				t.Fatalf("/readyz: %d %q", status, detail)
			}
			if _, metrics := s.Get(t, "/metrics"); !strings.Contains(metrics, "gozzard_record_lost 1") {
				t.Fatal("the metric does not say it")
			}
			out, failed = tool(t, "doctor", "--data", s.Data)
			if !failed || !strings.Contains(out, fmt.Sprintf("the server (pid %d) acknowledges nothing", s.PID())) {
				t.Fatalf("the doctor says: %s", out)
			}
			t.Logf("fault K11 %s: %d calls refused, 0 acknowledged, logged after %s", name, refused,
				time.Since(lost).Round(time.Millisecond))

			// The files are put back: the server goes on, with everything that it has acknowledged.
			for _, suffix := range []string{"", "-wal"} {
				if _, err := os.Stat(record + suffix + ".away"); err == nil {
					if err := os.Rename(record+suffix+".away", record+suffix); err != nil {
						t.Fatal(err)
					}
				}
			}
			ft.Until(t, time.Minute, s.Output, func() bool { ans, err := register(9); return err == nil && ans.Code == 0 })

			// It is noticed without any call, too.
			before := strings.Count(s.Output(), "the record is lost")
			if err := os.Rename(record, record+".away"); err != nil {
				t.Fatal(err)
			}
			ft.Until(t, time.Minute, s.Output, func() bool {
				return strings.Count(s.Output(), "the record is lost") > before
			})
			if err := os.Rename(record+".away", record); err != nil {
				t.Fatal(err)
			}

			s.Kill(syscall.SIGTERM)
			s.Again()
			s.AwaitReady()
			s.AwaitOnline(t, 1)
			if out, failed := tool(t, "doctor", "--data", s.Data); failed || !strings.Contains(out, "fit their checksums") {
				t.Fatalf("the doctor says after all was put back: %s", out)
			}
		})
	}
}

// K11: what docs/troubleshoot.md says about a deleted record brings back everything that was acknowledged.
func TestK11DeletedRecordIsSaved(t *testing.T) {
	ft.FileOnly(t, "it saves a deleted file")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	record := filepath.Join(s.Data, "gozzard.db")
	credentials := filepath.Join(s.Data, "credentials.json")
	create := func(name string) {
		t.Helper()
		if out, failed := tool(t, "app", "create", name, "--credentials", credentials); failed {
			t.Fatal(out)
		}
	}
	lost := func(file string) {
		t.Helper()
		before := strings.Count(s.Output(), "the record is lost")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		ft.Until(t, time.Minute, s.Output, func() bool {
			return strings.Count(s.Output(), "the record is lost") > before
		})
	}
	back := func(names ...string) {
		t.Helper()
		s.Again()
		s.AwaitReady()
		out, _ := tool(t, "app", "list", "--credentials", credentials)
		mentions(t, out, names...)
	}

	// The log is deleted: a server that is stopped saves what is in it.
	create("first-app")
	lost(record + "-wal")
	s.Kill(syscall.SIGTERM)
	back("first-app")

	// The record is deleted: it is copied from the descriptors of the server.
	create("second-app")
	lost(record)
	saved := map[string][]byte{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		name, err := os.Readlink(fd)
		name = strings.TrimSuffix(name, " (deleted)")
		if err != nil || name != record && name != record+"-wal" {
			continue
		}
		if saved[name], err = os.ReadFile(fd); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill(syscall.SIGTERM)
	for _, name := range []string{record, record + "-wal"} {
		if err := os.WriteFile(name, saved[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	back("first-app", "second-app")
	if out, failed := tool(t, "doctor", "--data", s.Data); failed {
		t.Fatalf("the doctor says: %s", out)
	}
}

// K4: bits that change in rows while the server is down. SQLite's own check passes. The server says so in its log, its
// metrics and /readyz, and the doctor names the table.
func TestK4FlippedRowsAreReported(t *testing.T) {
	ft.FileOnly(t, "it changes bits in the file; PostgreSQL has page checksums of its own")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	s.StartAgent(t, 1, "")
	for n := range 30 {
		s.OK("register_proc_info", ft.J{"meta": ft.J{"namespace": "gse", "name": fmt.Sprintf("flipped-%02d", n)},
			"spec": ft.J{"identity": ft.J{"proc_name": "d", "setup_path": "/tmp", "pid_path": "/tmp/d.pid", "user": "root"},
				"control": ft.J{"start_cmd": "./d --option=" + strings.Repeat("long", 50)}}, "hosts": []ft.J{ft.Host(1)}}, nil)
	}
	ft.Until(t, time.Minute, s.Output, func() bool {
		_, m := s.Get(t, "/metrics")
		return strings.Contains(m, "gozzard_record_damaged_pages 0") &&
			!strings.Contains(m, "gozzard_record_checked_timestamp_seconds 0\n")
	})
	s.Kill(syscall.SIGTERM)

	record := filepath.Join(s.Data, "gozzard.db")
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "--option=longlong")
	if at < 0 {
		t.Fatal("the definition is not in the record")
	}
	b[at+9] ^= 1 // --option=monglong…
	if err := os.WriteFile(record, b, 0o600); err != nil {
		t.Fatal(err)
	}

	out, failed := tool(t, "doctor", "--data", s.Data)
	if !failed || !strings.Contains(out, "1 of ") || !strings.Contains(out, "pages are damaged (specs)") {
		t.Fatalf("the doctor says: %s", out)
	}
	s.Again()
	s.AwaitReady()
	ft.Until(t, time.Minute, s.Output, func() bool { return strings.Contains(s.Output(), "the record is damaged") })
	status, detail := readiness(t, s.API)
	if status != http.StatusOK || !strings.Contains(detail, "pages are damaged (specs)") {
		t.Fatalf("/readyz: %d %q", status, detail)
	}
	if _, metrics := s.Get(t, "/metrics"); !strings.Contains(metrics, "gozzard_record_damaged_pages 1") {
		t.Fatal("the metric does not say it")
	}

	// No backup is made of it: it would in time replace the good ones.
	key, _ := tool(t, "backup", "keygen", "--to", filepath.Join(t.TempDir(), "backup.key"))
	recipient := key[strings.Index(key, "age1"):]
	recipient = strings.Fields(recipient)[0]
	out, failed = tool(t, "backup", "create", "--data", s.Data, "--to", filepath.Join(t.TempDir(), "b.age"), "--recipient",
		recipient)
	if !failed || !strings.Contains(out, "is damaged and was not copied") {
		t.Fatalf("backup create says: %s", out)
	}
}

// V5: a second server on the same folder is refused with the pid of the first, also after the lock file was removed.
func TestV5SecondServerWithoutLockFile(t *testing.T) {
	ft.FileOnly(t, "it removes the lock file; TestV16RecordAndFolderBelongTogether starts a second server")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	lock := filepath.Join(s.Data, "gozzard.db.lock")
	for i := range 3 {
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		if i == 2 { // another empty file in its place
			if err := os.WriteFile(lock, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, failed := tool(t, "server", "--data", s.Data, "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0")
		if !failed || !strings.Contains(out, fmt.Sprintf("database in use by pid %d", s.PID())) {
			t.Fatalf("the second server: %s", out)
		}
		ft.Until(t, time.Minute, s.Output, func() bool { b, err := os.ReadFile(lock); return err == nil && len(b) > 0 })
	}
	mentions(t, s.Output(), "the lock file of the database was removed or replaced")
	s.AwaitReady()
}
