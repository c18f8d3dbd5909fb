//go:build linux

package fleettest_test

import (
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestHostingByTheSentence checks the definition of supervision (托管), sentence by sentence as the documentation of
// operate_proc has it.
func TestHostingByTheSentence(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "", "GOZZARD_SAMPLE_INTERVAL=1s")
	fx := ft.NewDaemon(t, t.TempDir(), "gzhosting")
	fx.Script("busy.sh", "while :; do :; done")
	busy := "setsid sh ./busy.sh </dev/null >/dev/null 2>&1 &\necho $! > " + fx.PIDFile()
	// The calm one has no child: a child that survives a kill during the check of a start is what the start left running.
	calm := "[ -p calm ] || mkfifo calm\nsetsid sh -c 'exec 3<>calm; while :; do read line <&3; done' </dev/null " +
		">/dev/null 2>&1 &\necho $! > " + fx.PIDFile()
	fx.Script("start.sh", "echo start >> calls\n"+calm)
	spec := fx.Spec(nil)
	spec["identity"].(ft.J)["proc_name"] = "sh"
	spec["resource"] = ft.J{"cpu": 5, "mem": 50}
	pid := func() int { return alivePID(t, fx) }

	op := func(n, want int) ft.Entry {
		t.Helper()
		task := s.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "gse", "name": "hosting"}, "op_type": n,
			"spec": spec, "hosts": []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}})
		e := s.Await(task)["0:127.0.0.1:gse:hosting"]
		if e.Code != want {
			t.Fatalf("op %d: wanted %d, got %+v", n, want, e)
		}
		return e
	}

	status := func() ft.Info { return s.Status("gse", "hosting", ft.Host(1))[0] }
	wait := func(words string, cond func() bool) {
		t.Helper()
		ft.Until(t, 40*time.Second, func() string { return words + ": " + status().Message }, cond)
	}

	// A start supervises, and the agent restarts what died.
	op(0, 0)

	if !status().IsAuto {
		t.Fatal("启动成功会注册托管: a start that succeeds hosts")
	}

	old := pid()
	ft.KillPID(t, old)
	wait("当托管进程异常退出时，agent 会自动拉起托管进程", func() bool { p := pid(); return p > 0 && p != old })

	// The agent kills and restarts a process over its limit.
	fx.Script("start.sh", "echo start >> calls\n"+busy)
	old = pid()
	ft.KillPID(t, old)
	wait("the busy one starts", func() bool { p := pid(); return p > 0 && p != old })
	old = pid()
	fx.Script("start.sh", "echo start >> calls\n"+calm)
	wait("当托管进程资源超限时，agent 会杀死托管进程", func() bool { return pid() != old })

	wait("what was killed over its limit is pulled up",
		func() bool { return pid() > 0 && strings.Contains(status().Message, "cpu") })

	// A process that is not supervised any more is left alone.
	op(4, 0)
	fx.Script("start.sh", "echo start >> calls\n"+busy)
	op(1, 0)
	op(0, 0)
	op(4, 0)
	old = pid()
	time.Sleep(6 * time.Second) // more samples than the agent needs to act

	if pid() != old {
		t.Fatal("取消托管进程: an unhosted process over its limit is left alone")
	}

	ft.KillPID(t, old)
	time.Sleep(3 * time.Second)

	if pid() > 0 {
		t.Fatal("取消托管进程: an unhosted process is not pulled up")
	}

	// Supervision starts a process that does not run. A stop and a kill end supervision.
	fx.Script("start.sh", "echo start >> calls\n"+calm)
	op(3, 0)
	wait("注册托管进程: a hosted process that does not run is pulled up", func() bool { return pid() > 0 })
	op(1, 0)

	if status().IsAuto || pid() > 0 {
		t.Fatal("停止成功会取消托管")
	}

	op(0, 0)
	op(9, 0)

	if status().IsAuto || pid() > 0 {
		t.Fatal("杀死成功会取消托管")
	}
}

// alivePID is the live process of a pid file, whatever its name is.
func alivePID(t *testing.T, fx *ft.Daemon) int {
	t.Helper()
	p := *fx
	p.Name = "sh"
	return p.PID()
}
