//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestMain(m *testing.M) { ft.Main(m) }

// registeredDaemon is one real daemon that is registered on host 1 of a dev fleet.
type registeredDaemon struct {
	*ft.API
	t    *testing.T
	d    *ft.Dev
	fx   *ft.Daemon
	meta ft.J
	key  string
}

func newRegisteredDaemon(t *testing.T, d *ft.Dev, name, daemon string, policy ft.J) *registeredDaemon {
	t.Helper()
	g := &registeredDaemon{API: d.For(t), t: t, d: d, fx: ft.NewDaemon(t, t.TempDir(), daemon),
		key: "0:0:127.0.0.1:gse:" + name}
	if err := os.Chmod(g.fx.Dir, 0o755); err != nil {
		t.Fatal(err)
	}

	g.meta = ft.J{"namespace": "gse", "name": name, "labels": ft.J{"proc_name": daemon}}
	if e := g.register("register_proc_info", g.fx.Spec(policy)); e.Code != 0 {
		t.Fatalf("register: %+v", e)
	}

	t.Cleanup(func() {
		_, _ = g.Try("unregister_proc_info", ft.J{"meta": g.meta, "hosts": []ft.J{ft.Host(1)}})
	})

	return g
}

func (g *registeredDaemon) register(call string, spec ft.J) ft.Entry {
	g.t.Helper()
	out := map[string]ft.Entry{}
	g.OK(call, ft.J{"meta": g.meta, "hosts": []ft.J{ft.Host(1)}, "spec": spec}, &out)
	if len(out) != 1 {
		g.t.Fatalf("%s: keys %v", call, out)
	}
	return out[g.key]
}

func (g *registeredDaemon) op(n, want int) ft.Entry {
	g.t.Helper()
	task := g.Operate("operate_proc", ft.J{"meta": g.meta, "op_type": n, "hosts": []ft.J{ft.Host(1)}})
	first := g.Results(task)
	if _, ok := first[g.key]; !ok || len(first) != 1 {
		g.t.Fatalf("op %d: first poll has %v", n, first)
	}
	e := g.Await(task)[g.key]
	if e.Code != want {
		g.t.Fatalf("op %d: wanted %d, got %+v", n, want, e)
	}
	return e
}

func (g *registeredDaemon) status() ft.Info {
	g.t.Helper()
	rows := g.Status("gse", g.meta["name"].(string), ft.Host(1))
	if len(rows) != 1 {
		g.t.Fatalf("%d rows", len(rows))
	}
	return rows[0]
}

func (g *registeredDaemon) until(words string, cond func() bool) {
	g.t.Helper()
	ft.Until(g.t, time.Minute, func() string {
		return fmt.Sprintf("%s: status %+v, calls %v, pid %d", words, g.status(), g.fx.Calls(), g.fx.PID())
	}, cond)
}

// value is the only element in the content of a control operation.
func value(t *testing.T, e ft.Entry) map[string]any {
	t.Helper()
	var c struct {
		Value []map[string]any `json:"value"`
	}
	if err := json.Unmarshal([]byte(e.Content), &c); err != nil || len(c.Value) != 1 {
		t.Fatalf("content %q: %v", e.Content, err)
	}
	return c.Value[0]
}

func TestOperations(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)

	t.Run("the whole life of a daemon with a Chinese name", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "网关-1", "gzlife", nil)

		// Registering starts nothing.
		if e := g.register("register_proc_info", g.fx.Spec(nil)); e.Code != 850 {
			t.Fatalf("second register: %+v", e)
		}
		if g.fx.PID() > 0 {
			t.Fatal("register started the process")
		}
		if s := g.status(); s.Flag != 2 || s.Status != 2 || s.PID != -1 || s.IsAuto {
			t.Fatalf("after register: %+v", s)
		}

		// Stop (1) what does not run, start (0) it, and start it again.
		e := g.op(1, 829)
		if e.Msg != "no need to stop the process(gzlife) that is not running" {
			t.Fatalf("829: %+v", e)
		}

		e = g.op(0, 0)
		if v := value(t, e); v["result"] != "success" || v["procName"] != "gzlife" || v["setupPath"] != g.fx.Dir {
			t.Fatalf("value %v", v)
		}

		pid := g.fx.PID()
		g.until("start is not in status", func() bool {
			s := g.status()
			return s.PID == pid && s.Status == 1 && s.Flag == 1 && s.IsAuto && s.Version == "1.2.19" && s.FD > 0 &&
				s.Mem > 0
		})

		if s := g.status(); abs(s.LastStart-time.Now().Unix()) > 60 || abs(s.Reported-time.Now().Unix()) > 60 ||
			abs(s.Registered-time.Now().Unix()) > 60 {
			t.Fatalf("times: %+v", s)
		}

		e = g.op(0, 828)
		if e.Msg != "no need to start the process gzlife(网关-1) repeatedly that is already running" ||
			g.fx.Count("start") != 1 {
			t.Fatalf("828: %+v, calls %v", e, g.fx.Calls())
		}

		// The agent restarts what died. Reload (8) keeps the process, restart (7) replaces it.
		ft.KillPID(t, pid)
		g.until("not pulled up", func() bool { p := g.fx.PID(); return p > 0 && p != pid && g.status().PID == p })
		pid = g.fx.PID()
		g.op(8, 0)

		if g.fx.PID() != pid || g.fx.Count("reload") != 1 {
			t.Fatalf("reload: %v", g.fx.Calls())
		}

		g.op(7, 0)

		if p := g.fx.PID(); p == pid || p < 0 || g.fx.Count("restart") != 1 {
			t.Fatalf("restart: %v", g.fx.Calls())
		}

		// Stop supervising (4): a process that dies stays down. Supervise (3): it starts.
		g.op(4, 0)

		if s := g.status(); s.IsAuto || s.Status != 1 {
			t.Fatalf("after unhost: %+v", s)
		}

		ft.KillPID(t, g.fx.PID())
		g.until("death is not in status", func() bool { s := g.status(); return s.Status == 2 && s.PID == -1 })
		g.op(3, 0)
		g.until("host does not pull up", func() bool { return g.fx.PID() > 0 && g.status().Status == 1 })
		g.op(3, 0)

		// Kill (9) and stop (1) end the process and its supervision.
		g.op(9, 0)

		if g.fx.PID() > 0 || g.fx.Count("kill") != 1 {
			t.Fatalf("kill: %v", g.fx.Calls())
		}

		g.op(9, 829)

		if s := g.status(); s.Status != 2 || s.Flag != 2 || s.IsAuto {
			t.Fatalf("after kill: %+v", s)
		}

		g.op(0, 0)
		g.op(1, 0)

		if g.fx.Count("stop") != 1 || g.fx.Copies() != 0 {
			t.Fatalf("stop: %v, %d copies", g.fx.Calls(), g.fx.Copies())
		}
	})

	t.Run("query", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "query", "gzquery", nil)
		inst := func() map[string]any {
			e := g.op(2, 0)
			var c struct {
				IP      string
				Process []struct {
					Procname string
					Instance []map[string]any
				}
			}
			if err := json.Unmarshal([]byte(e.Content), &c); err != nil || len(c.Process) != 1 ||
				len(c.Process[0].Instance) != 1 {
				t.Fatalf("content %q: %v", e.Content, err)
			}

			if c.Process[0].Procname != "gzquery" || c.IP != "127.0.0.1" {
				t.Fatalf("content %q", e.Content)
			}

			return c.Process[0].Instance[0]
		}

		if i := inst(); i["pid"] != -1.0 || i["isAuto"] != false || i["startTime"] != "" || i["stat"] != "" {
			t.Fatalf("stopped: %v", i)
		}

		g.op(0, 0)
		i := inst()
		if i["pid"] != float64(g.fx.PID()) || i["isAuto"] != true ||
			!strings.Contains(i["cmdline"].(string), "gzquery 1000000") || i["threadCount"] != 1.0 {
			t.Fatalf("running: %v", i)
		}

		for _, k := range []string{"freeVMem", "utime", "stime", "startTime", "stat", "cmdline", "version", "health"} {
			if _, ok := i[k].(string); !ok {
				t.Errorf("%s is %T", k, i[k])
			}
		}
	})

	t.Run("a start command that fails", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "fails", "gzfails", nil)
		g.fx.Script("start.sh", "echo 没有配置 >&2; exit 3")
		e := g.op(0, 65535)
		if !strings.Contains(e.Msg, "没有配置") || !strings.Contains(value(t, e)["result"].(string), "没有配置") {
			t.Fatalf("%+v", e)
		}
		if s := g.status(); s.IsAuto || s.Flag != 2 {
			t.Fatalf("a failed start hosts: %+v", s)
		}
	})

	t.Run("a process that dies within its start check", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "dies", "gzdies", nil)
		g.fx.Script("start.sh", "echo about to die\nsetsid ./gzdies 0.2 </dev/null >/dev/null 2>&1 &\necho $! > "+
			g.fx.PIDFile())
		e := g.op(0, 836)
		if !strings.HasPrefix(e.Msg, "start process (") || !strings.Contains(e.Msg, "about to die") {
			t.Fatalf("%+v", e)
		}
	})

	t.Run("a stop that does not stop", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "stubborn", "gzobstinate", nil)
		g.fx.Script("stop.sh", "echo not today")
		g.op(0, 0)
		e := g.op(1, 836)
		if !strings.HasPrefix(e.Msg, "stop") || g.fx.PID() < 0 {
			t.Fatalf("%+v", e)
		}
		if s := g.status(); !s.IsAuto || s.Status != 1 {
			t.Fatalf("a failed stop unhosts: %+v", s)
		}
	})

	t.Run("empty commands", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "bare", "gzbare", nil)
		spec := g.fx.Spec(nil)
		spec["control"] = ft.J{"start_cmd": "./start.sh"}
		if e := g.register("update_proc_info", spec); e.Code != 0 {
			t.Fatalf("update: %+v", e)
		}

		g.op(0, 0)
		pid := g.fx.PID()
		g.op(7, 0)

		if p := g.fx.PID(); p == pid || p < 0 {
			t.Fatal("an empty restart_cmd is stop and start")
		}
		if e := g.op(8, 65535); !strings.Contains(e.Msg, "reload_cmd") {
			t.Fatalf("%+v", e)
		}

		g.op(1, 0)
		g.op(0, 0)
		g.op(9, 0)

		if g.fx.Copies() != 0 {
			t.Fatal("left over")
		}
	})

	t.Run("a command that hangs", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "hangs", "gzhangs", ft.J{"op_timeout": 1})
		g.fx.Script("reload.sh", "(sleep 7654321 & sleep 7654321)")
		e := g.op(8, 65535)
		if !strings.Contains(e.Msg, "reload_cmd") {
			t.Fatalf("%+v", e)
		}
		if n := ft.CountArgs(t, "7654321"); n != 0 {
			t.Fatalf("%d processes of the timed-out command are left", n)
		}
	})

	t.Run("operations at once are serial", func(t *testing.T) {
		g := newRegisteredDaemon(t, d, "crowd", "gzcrowd", nil)
		codes := make(chan int, 8)
		for range cap(codes) {
			go func() {
				task := g.Operate("operate_proc", ft.J{"meta": g.meta, "op_type": 0, "hosts": []ft.J{ft.Host(1)}})
				codes <- g.Await(task)[g.key].Code
			}()
		}

		var got []int
		for range cap(codes) {
			got = append(got, <-codes)
		}

		slices.Sort(got)

		if want := []int{0, 828, 828, 828, 828, 828, 828, 828}; !slices.Equal(got, want) || g.fx.Copies() != 1 {
			t.Fatalf("codes %v, %d copies", got, g.fx.Copies())
		}
	})

	t.Run("as another account", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("changing accounts needs root")
		}

		fx := ft.NewDaemon(t, t.TempDir(), "gznobody")
		for p := fx.Dir; p != "/" && p != os.TempDir(); p = p[:strings.LastIndexByte(p, '/')] {
			if err := os.Chmod(p, 0o777); err != nil {
				t.Fatal(err)
			}
		}

		fx.User = "nobody"
		fx.Script("start.sh", "id -un > who\nsetsid ./gznobody 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+
			fx.PIDFile())
		a := d.For(t)
		meta := ft.J{"namespace": "gse", "name": "nobody"}
		task := a.Operate("operate_proc_v2", ft.J{"meta": meta, "op_type": 0,
			"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}, "spec": fx.Spec(nil)})
		if e := a.Await(task)["0:127.0.0.1:gse:nobody"]; e.Code != 0 {
			t.Fatalf("%+v", e)
		}
		if b, _ := os.ReadFile(fx.Dir + "/who"); string(b) != "nobody\n" {
			t.Fatalf("ran as %q", b)
		}

		task = a.Operate("operate_proc_v2", ft.J{"meta": meta, "op_type": 1,
			"hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}, "spec": fx.Spec(nil)})
		if e := a.Await(task)["0:127.0.0.1:gse:nobody"]; e.Code != 0 {
			t.Fatalf("%+v", e)
		}
	})

	t.Run("unknown process and unknown host", func(t *testing.T) {
		a := d.For(t)
		task := a.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": "never"}, "op_type": 0,
			"hosts": []ft.J{ft.Host(1), ft.Host(99)}})
		r := a.Await(task)
		if e := r["0:0:127.0.0.1:gse:never"]; e.Code != 65535 || !strings.Contains(e.Msg, "no definition") {
			t.Fatalf("%+v", e)
		}
		if e := r["0:0:127.0.0.99:gse:never"]; e.Code != 117 {
			t.Fatalf("%+v", e)
		}
	})
}

func abs(n int64) int64 { return max(n, -n) }
