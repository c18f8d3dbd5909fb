//go:build !windows

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/pgtest"
)

// sharedOptions are those of a server with everything that one of several servers does.
func sharedOptions(t *testing.T, data, address string) Options {
	o := testOptions(t, data)
	o.Record, o.shared = address, true
	o.AgentListen, o.Trust.Enrol = "127.0.0.1:0", true
	o.Checkpoint = time.Hour
	o.Export.File, o.Export.FileKeep = filepath.Join(data, "export.jsonl"), 1
	o.FirstApp = FirstApp{"app", "secret"}
	return o
}

// start runs a server until stop is called, or the test ends.
func start(t *testing.T, o Options) (s *Server, stop func()) {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	ended := false
	stop = func() {
		cancel()
		if ended {
			return
		}
		ended = true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never %s", what)
		}
	}
}

// TestTwoServersOneWork: of two servers on one record one does the work that only one may do, also for callers of the
// other. When it ends, the other one goes on where it was.
func TestTwoServersOneWork(t *testing.T) {
	address := pgtest.Start(t, "off").URL("postgres")

	// The second server has the keys of the first, and an id that is not the first one's.
	first, second := sharedOptions(t, t.TempDir(), address), sharedOptions(t, t.TempDir(), address)
	a, stop := start(t, first)
	all := []string{leaseCheckpoints, leaseEvents, leaseExport + exportFile, leaseJobs, leaseNotify, leasePrune, leaseReleases, leaseServers}
	eventually(t, "has the first server all leases", func() bool { return slices.Equal(a.leases.Held(), all) })
	copyKeys(t, second.Data, first.Data)
	b, _ := start(t, second)
	eventually(t, "are both servers recorded", func() bool {
		list, err := b.store.Servers(t.Context())
		return err == nil && len(list) == 2 && list[0].URL != list[1].URL
	})

	checkList(t, b, a.id, all)

	// A job that is created at the second server is done by the first.
	job := createJob(t, a, b)
	eventually(t, "has the job ended", func() bool {
		j, err := b.store.Job(t.Context(), 12, job.ID)
		return err == nil && j.State.Final()
	})
	if held := b.leases.Held(); len(held) > 0 {
		t.Errorf("the second server holds %v", held)
	}

	// The first ends: the second one has everything, and the exports have each row once.
	stop()
	eventually(t, "has the second server all leases", func() bool { return slices.Equal(b.leases.Held(), all) })
	checkList(t, b, b.id, all)
	createJob(t, nil, b)
	head, err := b.store.AuditHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var rows []int64
	eventually(t, "are all rows exported", func() bool {
		rows = append(exported(t, first.Export.File), exported(t, second.Export.File)...)
		return len(rows) > 0 && rows[len(rows)-1] >= head.Seq
	})
	for i, seq := range rows {
		if seq != int64(i+1) {
			t.Fatalf("the exports have the rows %v", rows)
		}
	}
	if len(exported(t, first.Export.File)) == 0 {
		t.Error("the first server exported nothing")
	}
}

// checkList checks what a caller sees of two servers, one of which has all leases.
func checkList(t *testing.T, s *Server, holder string, all []string) {
	t.Helper()
	list, err := s.listServers(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, v := range list {
		want := []string{}
		if v.ID == holder {
			want = all
		}
		if !slices.Equal(v.Leases, want) || v.Here != (v.ID == s.id) || v.Drained || v.Version != "test" || v.Name == "" ||
			v.URL == "" || v.Seen.IsZero() || v.Started.IsZero() {
			t.Errorf("got %+v, want the leases %v", v, want)
		}
	}
}

// copyKeys makes the data folder of a second server from that of the first.
func copyKeys(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{serverFile, "export.jsonl"} {
		if err := os.RemoveAll(filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// business has a process on a host that is not there: an operation on it has its verdict at once.
const business = `
biz: 12
name: Shop
sets:
  - id: 1
    name: Shanghai
    env: 3
    modules:
      - id: 2
        name: front
        instances:
          - id: 3
            name: front-1
            host: {cloud: 0, ip: 10.0.0.1}
            processes:
              - {id: 4, name: front, user: root, work_path: /srv, pid_file: /srv/pid, start_cmd: ./start, stop_cmd: ./stop}
`

// createJob creates a job at a server, about a business that was brought to another one before; nil: none is brought.
func createJob(t *testing.T, at, by *Server) (j record.Job) {
	t.Helper()
	caller := gozzard.Caller{App: "app", User: "me", Rights: gozzard.Everything()}
	if at != nil {
		doc, err := topology.Parse([]byte(business))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at.plane.ApplyTopology(t.Context(), record.ApplyRequest{Caller: caller, Business: doc,
			Source: record.SourceFile}); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "knows the server the business", func() bool {
		n, _ := by.plane.FindProcesses(caller, topology.Query{Biz: 12, Limit: 1})
		return n > 0
	})
	j, err := by.jobs.Create(t.Context(), record.JobRequest{Caller: caller, Biz: 12, Action: gozzard.ActionStart})
	if err != nil || j.State.Final() {
		t.Fatalf("%+v, %v", j, err)
	}
	return j
}

// exported are the numbers of the rows in a file of an export.
func exported(t *testing.T, path string) (rows []int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(strings.NewReader(string(text))); in.Scan(); {
		var row struct {
			Seq int64 `json:"seq"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row.Seq)
	}
	return rows
}

// TestServerID: a server keeps its id, and says what to do when its file is damaged.
func TestServerID(t *testing.T) {
	data := t.TempDir()
	first, err := keptID(data)
	if err != nil || len(first) < 20 {
		t.Fatal(first, err)
	}
	if again, err := keptID(data); err != nil || again != first {
		t.Errorf("%q after %q, %v", again, first, err)
	}
	if other, err := keptID(t.TempDir()); err != nil || other == first {
		t.Errorf("two servers have the id %q, %v", other, err)
	}

	for _, text := range []string{"", "{}", `{"id":""}`, `{"id":"` + strings.Repeat("x", 65) + `"}`, `{"id":7}`} {
		if err := os.WriteFile(filepath.Join(data, serverFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := keptID(data); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%s: %q, %v", text, id, err)
		}
	}
}
