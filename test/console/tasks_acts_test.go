//go:build linux

package console_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// catchCopies keeps what the page copies in window.copied: a browser without a window has no clipboard.
func catchCopies(p *console.Page) {
	p.Eval(`void (navigator.clipboard.writeText = async (s) => { window.copied = s; })`, nil)
}

// pickCell: a click on the cell of a process shows what the task did on its host.
func pickCell(t *testing.T, f *console.Fleet, p *console.Page, id string) {
	t.Helper()
	task, err := f.Client.Task(t.Context(), id, 0, client.ShowAll)
	if err != nil || len(task.Attempts) != 8 {
		t.Fatalf("task %+v: %v", task, err)
	}
	p.Click("button", "done 4")
	p.Until("the filter in the address", `location.search.includes("result=done")`)

	// A cell is 20 pixels wide. Try two that are about different hosts.
	first := 0
	for task.Attempts[first].Host.IP == task.Attempts[7].Host.IP {
		first++
	}
	for _, cell := range []int{first, 7} {
		p.ClickAt(".task-cells canvas", float64(20*cell+9), 9)
		p.Until(fmt.Sprintf("the rows of the host of cell %d", cell), fmt.Sprintf(`(() => {
			const rows = [...document.querySelectorAll("tr[aria-rowindex]")], query = new URLSearchParams(location.search);
			return rows.length === 4 && rows.every((r) => r.innerText.includes(%[1]q)) &&
				query.get("q")?.endsWith(%[1]q) && !query.get("result");
		})()`, task.Attempts[cell].Host.IP))
	}
	p.Fill("Host, process or message", "")
	p.Until("all rows", `document.querySelectorAll("tr[aria-rowindex]").length === 8`)
}

// retryWhole repeats everything that failed in a task, from the head of its page.
func retryWhole(t *testing.T, f *console.Fleet, p *console.Page, allow string) {
	t.Helper()
	if err := os.Remove(allow); err != nil {
		t.Fatal(err)
	}
	failed := begin(t, f, "restart", "bad-*", "good-1").TaskID
	p.Go("/console/tasks/" + failed)
	p.WaitText("2 of 6 done, 4 failed")
	if err := os.WriteFile(allow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.Click("button", "Retry failed (4)")
	p.WaitText("4 processes on 2 hosts as a new task")
	p.Click("button", "Retry")
	p.WaitText("Repeats what failed in task " + strings.TrimPrefix(failed, "GSETASK:"))
	p.WaitText("4 of 4 done, 0 failed")

	// The server ran what failed, and nothing else.
	var id string
	p.Eval(`decodeURIComponent(location.pathname.split("/").at(-1))`, &id)
	task, err := f.Client.Task(t.Context(), id, 0, client.ShowAll)
	if err != nil || id == failed || len(task.Attempts) != 4 {
		t.Fatalf("task %s: %+v: %v", id, task, err)
	}
	for _, a := range task.Attempts {
		if !strings.HasPrefix(a.Name, "bad-") || a.Action != "restart" {
			t.Errorf("the retry did %s %s", a.Action, a.Name)
		}
	}
	for _, name := range []string{"bad-1", "bad-2"} {
		eventually(t, name+" runs", func() bool { return f.Process(t, name).State == client.StateRunning })
	}
}

// olderTasks: a list of more tasks than a page goes on where it ended, also after two clicks in a row.
func olderTasks(t *testing.T, f *console.Fleet, p *console.Page) {
	t.Helper()
	last := client.Accepted{}
	for range 55 {
		last = begin(t, f, "manage", "good-2")
	}
	if _, err := f.Client.Wait(t.Context(), last.TaskID, nil); err != nil {
		t.Fatal(err)
	}
	all, err := f.Client.Tasks(t.Context(), client.TaskQuery{}, 200)
	if err != nil || len(all.Tasks) <= 55 || len(all.Tasks) >= 100 {
		t.Fatalf("%d tasks: %v", len(all.Tasks), err)
	}

	const shown = `[...document.querySelectorAll(".tasks-table tbody tr td:last-child")].map((c) => c.innerText.trim())`
	p.Go("/console/tasks")
	p.Wait("button", "Older tasks")
	p.Until("the first page", shown+`.length === 50`)
	p.Eval(`(() => { const b = [...document.querySelectorAll("main button")].find((b) => b.innerText === "Older tasks");
		b.click(); b.click(); })()`, nil)
	p.WaitNo("button", "Older tasks")

	var list []string
	p.Eval(shown, &list)
	if len(list) != len(all.Tasks) {
		t.Fatalf("%d rows of %d tasks", len(list), len(all.Tasks))
	}
	for i, task := range all.Tasks {
		if want := strings.TrimPrefix(task.ID, "GSETASK:"); list[i] != want {
			t.Errorf("row %d is task %s, not %s", i, list[i], want)
		}
	}
}
