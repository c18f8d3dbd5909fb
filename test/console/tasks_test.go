//go:build linux

package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// picky is a process that only starts when a file is there.
func picky(name, file string) string {
	return fmt.Sprintf(`
name: %s
namespace: shop
command: 'test -e %s || { echo "no licence, pid $$" >&2; exit 7; }; exec sleep 100000'
proc_name: sleep
folder: /
hosts: [{ip: 127.0.0.1}, {ip: 127.0.0.2}]
restart: never
start_check: 1s
`, name, file)
}

// stubborn is a process whose stop lasts until a file is there.
func stubborn(file string) string {
	return fmt.Sprintf(`
name: stubborn
namespace: shop
command: [sh, -c, "trap 'while ! test -e %s; do sleep 0.1; done; exit 0' TERM; while :; do sleep 0.1; done"]
folder: /
restart: never
start_check: 1s
stop_timeout: 100s
`, file)
}

// begin starts an operation on processes by their names, on every host that has them, and does not wait for it.
func begin(t *testing.T, f *console.Fleet, action string, names ...string) client.Accepted {
	t.Helper()
	a, err := f.Client.Operate(t.Context(), client.Operation{Action: action,
		Selection: client.Selection{Names: names, All: true}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// narrow waits until the page is not wider than the view.
func narrow(p *console.Page) {
	p.Until(p.Path()+" no wider than the view", `document.documentElement.scrollWidth <= innerWidth`)
}

// fits waits until the page is not wider than a narrow view.
func fits(p *console.Page, width int64) {
	p.Size(width, 800)
	narrow(p)
	p.Size(1280, 800)
}

// TestTaskRetry: a task appears by itself, its errors are in groups, and a retry repeats them after a preview.
func TestTaskRetry(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 2)
	p := f.Open(t)
	p.EnterByLink()
	p.Click("link", "Tasks")
	p.WaitText("No task yet")
	p.Accessible()

	// Half of the processes fail for one reason.
	dir := t.TempDir()
	allow := filepath.Join(dir, "allow")
	f.Define(t, picky("good-1", "/"))
	f.Define(t, picky("good-2", "/"))
	f.Define(t, picky("bad-1", allow))
	f.Define(t, picky("bad-2", allow))
	task := begin(t, f, "start", "good-*", "bad-*")
	p.WaitText("4 of 8 done, 4 failed")
	p.Accessible()

	// The task shows why.
	id := strings.TrimPrefix(task.TaskID, "GSETASK:")
	p.Click("link", id)
	p.WaitText("Start: task " + id)
	p.WaitText("ended")
	p.WaitText("native API")
	p.WaitText("8 processes on 2 hosts")
	p.WaitText("no licence")
	p.Until("one group of errors", `document.querySelectorAll(".task-errors > li").length === 1`)
	p.Accessible()
	fits(p, 390)
	pickCell(t, f, p, task.TaskID)

	// The results are filtered, and the address keeps it.
	p.Click("button", "failed 4")
	p.Until("four rows", `document.querySelectorAll("tr[aria-rowindex]").length === 4`)
	if !strings.Contains(p.Path(), "result=failed") {
		t.Errorf("the address is %s", p.Path())
	}

	// The hosts of what is shown are copied.
	catchCopies(p)
	p.Click("button", "Copy 2 hosts")
	p.Until("both hosts", `["127.0.0.1", "127.0.0.2"].every((h) => window.copied?.includes(h))`)

	// What failed is repeated when the cause is gone.
	if err := os.WriteFile(allow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.Click("button", "Retry these (4)")
	p.WaitText("4 processes on 2 hosts as a new task")
	p.Accessible()
	p.Click("button", "Retry")
	p.WaitText("Repeats what failed in task " + id)
	p.WaitText("4 of 4 done, 0 failed")
	p.Click("button", "中文")
	p.WaitText("已结束")
	p.Accessible()

	// Filters are in the address.
	p.Go("/console/tasks?state=failed")
	p.WaitText("完成 4/8，失败 4")
	p.WaitNoText("完成 4/4")
	p.Go("/console/tasks?name=nothing*")
	p.WaitText("没有符合条件的任务")
	p.Accessible()
	p.Click("button", "清除筛选")
	p.WaitText("完成 4/4")
	p.Click("checkbox", "只看我的")
	p.Until("the filter in the address", `location.search === "?mine=true"`)

	p.Click("button", "English")
	retryWhole(t, f, p, allow)
	olderTasks(t, f, p)
}

// TestTaskOverRestart: a server that goes away in the middle of a task takes nothing off the screen, and the page follows
// the task to its end when the server is back.
func TestTaskOverRestart(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	leave := filepath.Join(t.TempDir(), "leave")
	f.Define(t, stubborn(leave))
	f.Operate(t, "start", "stubborn")
	p := f.Open(t)
	p.EnterByLink()
	p.WaitSelector(".live-live")
	task := begin(t, f, "stop", "stubborn")
	p.Go("/console/tasks/" + task.TaskID)
	p.WaitText("0 of 1 done, 0 failed")
	p.WaitText("running")
	p.Accessible()

	// The server is gone: what was seen stays, with its age.
	p.Allow("ERR_")
	f.Kill(syscall.SIGKILL)
	p.WaitText("No connection to the server")
	p.WaitText("The server does not answer. What you see is")
	p.WaitText("shop/stubborn")
	p.Accessible()

	// It is back: the page is, too.
	f.Restart()
	if err := os.WriteFile(leave, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.WaitNoText("The server does not answer")
	p.WaitText("ended")
}
