//go:build linux

package fleettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestEndingGozzardTouchesNoProcess(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			d := ft.StartDev(t, 1)
			g := newRegisteredDaemon(t, d, "kept", "gzkept", nil)
			g.op(0, 0)
			pid := g.fx.PID()
			d.Kill(sig)

			if g.fx.PID() != pid {
				t.Fatal("the process is gone")
			}

			d.Restart()
			g.Cred = d.Cred
			g.until("not found again", func() bool {
				s := g.status()
				return s.PID == pid && s.Status == 1 &&
					s.IsAuto
			})

			if g.fx.Count("start") != 1 {
				t.Fatalf("started again: %v", g.fx.Calls())
			}

			d.Kill(sig)
			ft.KillPID(t, pid)
			d.Restart()
			g.Cred = d.Cred
			g.until("what died while gozzard was away is not pulled up",
				func() bool { p := g.fx.PID(); return p > 0 && p != pid })

			g.op(1, 0)
			d.Kill(sig)
			d.Restart()
			g.Cred = d.Cred
			g.until("stopped is not known", func() bool { s := g.status(); return s.Status == 2 && !s.IsAuto })
			time.Sleep(1500 * time.Millisecond) // longer than start_interval: a restart would have happened

			if g.fx.PID() > 0 {
				t.Fatal("what was stopped came back")
			}
		})
	}
}

func TestDevFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 3)
	path := filepath.Join(d.Data, "dev.json")
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", st.Mode(), err)
	}

	secret := d.Cred.Secret
	if len(secret) < 32 || strings.Contains(d.Output(), secret) {
		t.Fatalf("secret %q; output %s", secret, d.Output())
	}

	for _, want := range []string{d.Cred.URL, path, "gozzard ps"} { // printed after the file is written
		ft.Until(t, time.Minute, func() string { return fmt.Sprintf("output has no %q: %s", want, d.Output()) },
			func() bool { return strings.Contains(d.Output(), want) })
	}

	var data map[string]struct {
		Alive int `json:"bk_agent_alive"`
	}
	d.OK("get_agent_status", ft.J{"hosts": []ft.J{ft.Host(1), ft.Host(2), ft.Host(3), ft.Host(4)}}, &data)

	if data["0:127.0.0.1"].Alive+data["0:127.0.0.2"].Alive+data["0:127.0.0.3"].Alive != 3 ||
		data["0:127.0.0.4"].Alive != 0 || len(data) != 4 {
		t.Fatalf("%v", data)
	}

	d.Kill(syscall.SIGTERM)
	d.Restart()

	if d.Cred.Secret != secret {
		t.Fatal("the secret changed")
	}
}

func TestAcknowledgedTaskSurvives(t *testing.T) {
	t.Parallel() // it mostly waits
	d := ft.StartDev(t, 1)
	g := newRegisteredDaemon(t, d, "survivor", "gzsurvivor", nil)
	task := g.Operate("operate_proc", ft.J{"meta": g.meta, "op_type": 0, "hosts": []ft.J{ft.Host(1)}})
	d.Kill(syscall.SIGKILL)
	d.Restart()
	g.Cred = d.Cred
	e := g.Await(task)[g.key]
	alive := g.fx.PID() > 0
	switch e.Code {
	case 0:
		if !alive {
			t.Fatalf("%+v, but it does not run", e)
		}
	case 65535: // interrupted: it ran once at most
		if !strings.Contains(e.Msg, "interrupted") || g.fx.Count("start") > 1 {
			t.Fatalf("%+v, calls %v", e, g.fx.Calls())
		}
	default:
		t.Fatalf("%+v", e)
	}
}
