//go:build linux

package identity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// put replaces the definition by our own door and waits for its verdict.
func (p *proc) put(spec ft.J) client.Attempt {
	p.w.t.Helper()
	doc, err := json.Marshal(ft.J{"namespace": namespace, "name": p.name, "spec": spec,
		"hosts": []ft.J{{"cloud": 0, "ip": p.w.ip()}}})
	if err != nil {
		p.w.t.Fatal(err)
	}
	accepted, err := p.w.own.RegisterDocument(p.w.t.Context(), doc)
	if err != nil {
		p.w.t.Fatalf("PUT /api/v1/processes: %v", err)
	}
	return p.finish(accepted)
}

// registered is put that must succeed.
func (p *proc) registered(spec ft.J) {
	p.w.t.Helper()
	if a := p.put(spec); a.Verdict != client.Done {
		p.w.t.Fatalf("PUT /api/v1/processes: %s: %+v", p.name, a)
	}
}

// operate runs an operation by our own door.
func (p *proc) operate(action string) client.Attempt {
	p.w.t.Helper()
	cloud := 0
	accepted, err := p.w.own.Operate(p.w.t.Context(), client.Operation{Action: action,
		Selection: client.Selection{Namespace: namespace, Names: []string{p.name},
			Hosts: []client.Host{{Cloud: &cloud, IP: p.w.ip()}}}})
	if err != nil {
		p.w.t.Fatalf("%s of %s: %v", action, p.name, err)
	}
	return p.finish(accepted)
}

func (p *proc) finish(accepted client.Accepted) client.Attempt {
	p.w.t.Helper()
	task, err := p.w.own.Wait(p.w.t.Context(), accepted.TaskID, nil)
	if err != nil || len(task.Attempts) != 1 {
		p.w.t.Fatalf("task of %s: %+v, %v", p.name, task, err)
	}
	return task.Attempts[0]
}

// says waits until the message of the status contains words.
func (p *proc) says(words string) {
	p.w.t.Helper()
	p.await(fmt.Sprintf("the message does not say %q", words),
		func() bool { return strings.Contains(p.status().Message, words) })
}

// P19: the definition of a running process changes its proc_name. Nothing is started or stopped. The message says what
// does not fit, and the next restart applies the new definition.
func TestP19ChangedName(t *testing.T) {
	each(t, func(w *world) {
		ps := []*proc{w.daemon("bybk", "gzold"), w.daemon("byown", "gzold"), w.daemon("unhosted", "gzold")}
		for _, p := range ps {
			p.without("restart")
		}
		w.startAll(ps...)
		ps[2].must(opUnhost, 0)
		pids := []int{ps[0].main(), ps[1].main(), ps[2].main()}

		// Register another name by each door.
		if e := ps[0].update(ps[0].with("identity", "proc_name", "gznew")); e.Code != 0 {
			w.t.Fatalf("update_proc_info: %+v", e)
		}
		ps[1].registered(ps[1].with("identity", "proc_name", "gznew"))
		if e := ps[2].update(ps[2].with("identity", "proc_name", "gznew")); e.Code != 0 {
			w.t.Fatalf("update_proc_info: %+v", e)
		}

		// Nothing happens, but the message says it.
		for i, p := range ps {
			p.untouched("after another proc_name was registered", pids[i], time.Second)
			p.says("runs as gzold, definition says gznew")
		}

		// A good definition applies at the next restart.
		p := ps[0]
		p.copyOf("/bin/sleep", "gznew")
		p.Script("start.sh", strings.ReplaceAll("echo start >> calls\nsetsid ./gznew 1000000 </dev/null >/dev/null 2>&1 &\necho $! > PID", "PID", p.PIDFile()))
		p.spec = p.with("identity", "proc_name", "gznew")
		p.must(opRestart, 0)
		if n := p.called("gznew"); len(n) != 1 || len(p.called("gzold")) != 0 || p.Count("stop") != 1 {
			w.t.Fatalf("after restart: %v, calls %v", named(p.live()), p.Calls())
		}
		p.awaitRuns("after restart", p.called("gznew")[0])
		if m := p.status().Message; strings.Contains(m, "definition says") {
			w.t.Errorf("after restart: %q", m)
		}
	})
}

// P19: the definition of a running process changes its account.
func TestP19ChangedUser(t *testing.T) {
	other := map[string]string{"root": ordinary, ordinary: "root"}
	each(t, func(w *world) {
		account := other[w.account]
		if account == "" {
			account = "root"
		}
		ps := []*proc{w.daemon("bybk", "gzold"), w.daemon("byown", "gzold")}
		w.startAll(ps...)
		pids := []int{ps[0].main(), ps[1].main()}

		// An agent of an ordinary account may reject the definition, and must not act on it.
		e := ps[0].update(ps[0].with("identity", "user", account))
		a := ps[1].put(ps[1].with("identity", "user", account))
		if w.account == "root" && (e.Code != 0 || a.Verdict != client.Done) {
			w.t.Fatalf("%+v, %+v", e, a)
		}

		for i, p := range ps {
			p.untouched("after another user was registered", pids[i], 2*time.Second)
			if w.account == "root" {
				p.says(fmt.Sprintf("runs as user %s, definition says user %s", w.account, account))
			}
		}

		// The old definition still stops it by its stop_cmd.
		ps[0].must(opStop, 0)
		if len(ps[0].live()) > 0 || ps[0].Count("stop") != 1 {
			w.t.Errorf("after stop: %v, calls %v", named(ps[0].live()), ps[0].Calls())
		}
	})
}

// P19: an operation carries a definition with another proc_name.
func TestP19OperationWithAnotherName(t *testing.T) {
	each(t, func(w *world) {
		ps := []*proc{w.daemon("stop", "gzold"), w.daemon("start", "gzold"), w.daemon("loose", "gzold")}
		w.startAll(ps...)
		pids := []int{ps[0].main(), ps[1].main(), ps[2].main()}
		ps[2].must(opUnhost, 0)

		for _, p := range ps {
			p.spec = p.with("identity", "proc_name", "gznew")
		}

		// A start finds it running.
		ps[1].must(opStart, 828)
		ps[1].untouched("after a start with another name", pids[1], 2*time.Second)

		// A stop ends it by its stop_cmd, hosted or not.
		for _, p := range []*proc{ps[0], ps[2]} {
			p.must(opStop, 0)
			if len(p.live()) > 0 || p.Count("stop") != 1 {
				w.t.Errorf("%s: after stop: %v, calls %v", p.name, named(p.live()), p.Calls())
			}
		}
	})
}
