package cmdb_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/topology"
)

var sameAddrs = cmpopts.EquateComparable(netip.Addr{})

func TestRead(t *testing.T) {
	s := newStandIn(t)
	s.rows = []map[string]any{
		with(row(1), "host", "bk_host_innerip", "10.0.0.9,10.0.0.10"),
		with(with(row(2), "host", "bk_host_innerip", ""), "host", "bk_host_innerip_v6", "fd00::1"),
		with(with(row(3), "host", "bk_agent_id", "agent3"), "host", "bk_cloud_id", 9),
		with(row(4), "set", "bk_set_id", 0), // an idle host
		with(with(row(5), "process", "proc_num", 4), "service_instance", "id", 1001),
	}
	s.rows[4] = with(with(s.rows[4], "process", "bk_process_name", "second"), "service_instance", "name", "service 1")
	s.rows[4]["host"] = s.rows[0]["host"]
	with(with(s.rows[4], "process", "bk_func_id", 8), "process", "bind_info", []any{map[string]any{"port": "80"}})
	with(with(s.rows[0], "process", "bk_func_id", nil), "process", "bind_info", []any{})
	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}

	process := func(id int) topology.Process {
		return topology.Process{
			ID: id, Name: "java", FuncName: "java", Template: 26, Priority: 3, User: "root",
			WorkPath: "/data", PIDFile: "/data/java.pid", Start: "./start.sh", Timeout: 30,
		}
	}

	second := process(5)
	second.Name, second.Num, second.FuncID, second.BindInfo = "second", 4, "8", `[{"port":"80"}]`
	service := func(id int, host topology.Host, processes ...topology.Process) topology.ServiceInstance {
		return topology.ServiceInstance{ID: 1000 + id, Name: fmt.Sprintf("service %d", id), Host: host,
			Processes: processes}
	}

	module := func(id int, services ...topology.ServiceInstance) topology.Module {
		return topology.Module{ID: 20 + id, Name: fmt.Sprintf("module %d", id), ServiceTemplate: 200 + 10*id,
			Instances: services}
	}

	want := &topology.Business{
		ID: 2, Name: "business 2", Clouds: []topology.Cloud{{ID: 0, Name: "default area"}, {ID: 9}},
		Sets: []topology.Set{
			{ID: 10, Name: "set 0", Env: topology.EnvFormal, Modules: []topology.Module{
				module(1, service(1, topology.Host{ID: 1, IP: netip.MustParseAddr("10.0.0.9")}, process(1), second)),
			}},
			{ID: 11, Name: "set 1", Env: topology.EnvFormal, Modules: []topology.Module{
				module(2, service(2, topology.Host{ID: 2, IPv6: netip.MustParseAddr("fd00::1")}, process(2))),
				module(3, service(3, topology.Host{ID: 3, Cloud: 9, IP: netip.MustParseAddr("10.0.0.4"), Agent: "agent3"},
					process(3))),
			}},
		},
	}
	if diff := cmp.Diff(want, b, sameAddrs); diff != "" {
		t.Error(diff)
	}
}

func countProcesses(b *topology.Business) int {
	n := 0
	for _, s := range b.Sets {
		for _, m := range s.Modules {
			for _, i := range m.Instances {
				n += len(i.Processes)
			}
		}
	}
	return n
}

// TestPages: a business of any size is read completely, 500 rows at a time, with no more concurrent calls than allowed.
func TestPages(t *testing.T) {
	for _, n := range []int{0, 1, 499, 500, 501, 999, 1000, 1600} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newStandIn(t)
			s.fill(n)
			b, err := s.client(t, func(o *cmdb.Options) { o.Parallel = 3 }).Read(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if got := countProcesses(b); got != n {
				t.Errorf("read %d of %d", got, n)
			}
			if s.most > 3 {
				t.Errorf("%d calls at a time", s.most)
			}

			for _, c := range s.calls {
				if c.name == "list_process_related_info" && c.limit != 500 {
					t.Errorf("asked for %d rows", c.limit)
				}
			}
		})
	}
}

// TestModuleBatches: modules are requested 500 at a time.
func TestModuleBatches(t *testing.T) {
	s := newStandIn(t)
	for id := 1; id <= 1100; id++ {
		s.rows = append(s.rows, with(row(id), "module", "bk_module_id", 5000+id))
	}

	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.counted("find_module_batch"); n != 3 {
		t.Errorf("%d calls", n)
	}
	if m := b.Sets[1].Modules[0]; m.ServiceTemplate != m.ID*10 {
		t.Errorf("module is %+v", m)
	}
}

// TestRateLimits: rejected calls are repeated later, for every way in which CMDB rejects one.
func TestRateLimits(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"app":    func(w http.ResponseWriter) { answer(w, http.StatusOK, 1642902, "rate limit", nil) },
		"call":   func(w http.ResponseWriter) { answer(w, http.StatusTooManyRequests, 1642903, "rate limit", nil) },
		"status": func(w http.ResponseWriter) { http.Error(w, "slow down", http.StatusTooManyRequests) },
		"text": func(w http.ResponseWriter) {
			_,
				_ = w.Write([]byte(`{"result":false,"code":"1642902","message":"x"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.fill(700)

			s.before = func(c call, w http.ResponseWriter) bool {
				if c.n%2 == 1 { // every other one
					refuse(w)
					return true
				}
				return false
			}

			b, err := s.client(t).Read(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if got := countProcesses(b); got != 700 {
				t.Errorf("read %d", got)
			}
		})
	}
}

// TestRefusedForever: when CMDB rejects every call, the sync fails after a while and does not hang.
func TestRefusedForever(t *testing.T) {
	s := newStandIn(t)
	s.before = func(_ call, w http.ResponseWriter) bool {
		answer(w, http.StatusOK, 1642903, "rate limit", nil)
		return true
	}
	_, err := s.client(t, func(o *cmdb.Options) { o.Pause = time.Microsecond }).Read(t.Context(), 2)
	if gozzard.KindOf(err) != gozzard.ErrUnavailable {
		t.Errorf("got %v", err)
	}
}

// TestHalf: a page that always fails is an error, not a part of a business. A page that fails once is read again.
func TestHalf(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"error":  func(w http.ResponseWriter) { answer(w, http.StatusOK, 1199014, "database", nil) },
		"status": func(w http.ResponseWriter) { http.Error(w, "no", http.StatusBadGateway) },
		"cut off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"result":true`))
		},
		"no JSON": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`<html>`)) },
		"no data": func(w http.ResponseWriter) { answer(w, http.StatusOK, 0, "success", nil) },
		"empty": func(w http.ResponseWriter) {
			answer(w, http.StatusOK, 0, "success", map[string]any{"count": 700, "info": []any{}})
		},
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location",
				"/elsewhere")
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.fill(700)

			s.before = func(c call, w http.ResponseWriter) bool {
				if c.name == "list_process_related_info" && c.start > 0 {
					fail(w)
					return true
				}
				return false
			}

			b, err := s.client(t).Read(t.Context(), 2)
			if err == nil || b != nil {
				t.Errorf("got %v, %v", b, err)
			}
			if gozzard.KindOf(err) != gozzard.ErrUnavailable || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("once", func(t *testing.T) {
		s := newStandIn(t)
		s.fill(700)
		s.before = func(c call, w http.ResponseWriter) bool {
			if c.n == 2 {
				http.Error(w, "no", http.StatusBadGateway)
			}
			return c.n == 2
		}
		if b, err := s.client(t).Read(t.Context(), 2); err != nil || countProcesses(b) != 700 {
			t.Errorf("got %v", err)
		}
	})

	t.Run("without data at first", func(t *testing.T) {
		s := newStandIn(t)
		s.before = func(c call, w http.ResponseWriter) bool {
			if c.name == "list_process_related_info" {
				answer(w, http.StatusOK, 0, "success", nil)
				return true
			}
			return false
		}
		if b, err := s.client(t).Read(t.Context(), 2); err == nil {
			t.Errorf("nothing was taken for a business without processes: %v", b)
		}
	})
}

// TestChanging: a list that changes while it is read is read again, however it changes.
func TestChanging(t *testing.T) {
	for name, change := range map[string]func(s *standIn){
		"more":                func(s *standIn) { s.rows = append(s.rows, row(len(s.rows)+1)) },
		"fewer":               func(s *standIn) { s.rows = s.rows[1:] },
		"as many, but others": func(s *standIn) { s.rows = append(s.rows[1:len(s.rows):len(s.rows)], row(5000)) },
		"a set renamed": func(s *standIn) {
			for i := range s.rows {
				if s.rows[i]["set"].(map[string]any)["bk_set_id"] == 10 {
					with(s.rows[i], "set", "bk_set_name", "renamed")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t)
			s.fill(700)

			s.before = func(c call, _ http.ResponseWriter) bool {
				if c.name == "list_process_related_info" && c.n == 2 {
					s.mu.Lock()
					defer s.mu.Unlock()
					change(s)
				}
				return false
			}

			b, err := s.client(t, func(o *cmdb.Options) { o.Parallel = 1 }).Read(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			if got := countProcesses(b); got != len(s.rows) {
				t.Errorf("read %d of %d", got, len(s.rows))
			}
			if s.counted("search_cloud_area") < 2 {
				t.Error("was not read again")
			}
		})
	}

	t.Run("always", func(t *testing.T) {
		s := newStandIn(t)
		s.fill(700)
		s.before = func(c call, _ http.ResponseWriter) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.rows = append(s.rows, row(len(s.rows)+1))
			return false
		}
		if b, err := s.client(t).Read(t.Context(), 2); gozzard.KindOf(err) != gozzard.ErrUnavailable {
			t.Errorf("got %v, %v", b, err)
		}
	})
}

// TestOdd: rows that cannot be used are reported and do not prevent the others.
func TestOdd(t *testing.T) {
	s := newStandIn(t)
	s.fill(8)
	with(s.rows[0], "process", "bk_process_name", `a\b`)
	with(s.rows[1], "process", "work_path", "relative")
	with(s.rows[2], "process", "timeout", "soon")
	with(s.rows[3], "process", "start_cmd", "./start.sh ${bk_set_name}")

	for _, i := range []int{3, 7, 0, 4} {
		with(s.rows[i], "set", "bk_set_name", " $(reboot)\u202e ")
	}

	with(s.rows[4], "host", "bk_agent_id", "no:agent")
	with(s.rows[5], "set", "bk_set_env", "")

	for _, i := range []int{1, 2, 6} {
		with(s.rows[i], "set", "bk_set_env", nil)
	}

	var log bytes.Buffer
	b, err := s.client(t, func(o *cmdb.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log,
			nil))
	}).Read(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := countProcesses(b); got != 7 {
		t.Errorf("read %d", got)
	}
	if name := b.Sets[0].Name; name != " $(reboot) " { // blanks belong to a name
		t.Errorf("the set is called %q", name)
	}

	for _, part := range []string{"process 1 is left out: name", "process 2: work_path", "process 3: timeout",
		"process 4: start_cmd", "no:agent"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("%q is not in the log:\n%s", part, log.String())
		}
		if !slices.ContainsFunc(b.Left, func(line string) bool { return strings.Contains(line, part) }) {
			t.Errorf("%q is not in %q", part, b.Left)
		}
	}
}

// TestD4SetWithoutEnvironment: such a set is not formal.
func TestD4SetWithoutEnvironment(t *testing.T) {
	for _, env := range []any{"", nil, "x"} {
		s := newStandIn(t)
		s.fill(1)
		with(s.rows[0], "set", "bk_set_env", env)
		b, err := s.client(t).Read(t.Context(), 2)
		if err != nil || b.Sets[0].Env != topology.EnvNone || b.Sets[0].Env.String() != "" {
			t.Errorf("%v: %+v, %v", env, b, err)
		}
	}
}

// TestHostWithoutAddress: the processes of such a host are left out and named, and the others are read.
func TestHostWithoutAddress(t *testing.T) {
	s := newStandIn(t)
	s.fill(4)
	with(s.rows[2], "host", "bk_host_innerip", "")
	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil || countProcesses(b) != 3 || len(b.Left) != 1 || !strings.HasPrefix(b.Left[0], "process 3 is left out: ") {
		t.Fatalf("%+v, %v", b, err)
	}
}

// TestD3Clash: of two processes with the same name on one host, the one with the higher id is left out and named. The
// others are read.
func TestD3Clash(t *testing.T) {
	s := newStandIn(t)
	s.fill(6)
	with(s.rows[5], "host", "bk_host_innerip", "10.0.0.2") // that of process 1
	b, err := s.client(t).Read(t.Context(), 2)
	if err != nil || countProcesses(b) != 5 || len(b.Left) != 1 || len(b.Check()) != 0 {
		t.Fatalf("got %+v, %v", b, err)
	}
	for _, part := range []string{"process 6 is left out", `"java"`, "process 1 ", "10.0.0.2"} {
		if !strings.Contains(b.Left[0], part) {
			t.Errorf("%q is not in %v", part, b.Left)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Run("size", func(t *testing.T) {
		s := newStandIn(t)
		s.before = func(_ call, w http.ResponseWriter) bool {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 33<<20))
			return true
		}
		if _, err := s.client(t).Read(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("time", func(t *testing.T) {
		s := newStandIn(t)
		hold := make(chan struct{})
		defer close(hold)
		s.before = func(call, http.ResponseWriter) bool { <-hold; return true }
		_, err := s.client(t, func(o *cmdb.Options) { o.Timeout = 20 * time.Millisecond }).Read(t.Context(), 2)
		if gozzard.KindOf(err) != gozzard.ErrUnavailable {
			t.Errorf("got %v", err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		if _, err := s.client(t).Read(ctx, 2); gozzard.KindOf(err) != gozzard.ErrUnavailable {
			t.Errorf("got %v", err)
		}
	})

	t.Run("credentials", func(t *testing.T) {
		s := newStandIn(t)
		_, err := s.client(t, func(o *cmdb.Options) { o.Secret = "wrong" }).Read(t.Context(), 2)
		if err == nil || strings.Contains(err.Error(), "wrong") || !strings.Contains(err.Error(), "1306000") {
			t.Errorf("got %v", err)
		}
	})
}

func TestNew(t *testing.T) {
	for _, url := range []string{"", "paas.example.com", "ftp://x", "http://", "http://u:p@x", "http://x?y=1",
		"http://x#y"} {
		if _, err := cmdb.New(cmdb.Options{URL: url, App: "a", Secret: "b", User: "c"}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
	if _, err := cmdb.New(cmdb.Options{URL: "http://x", App: "a", User: "c"}); err == nil {
		t.Error("taken without a secret")
	}
}
