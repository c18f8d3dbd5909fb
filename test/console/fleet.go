//go:build linux

package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/fleettest"
)

// Fleet is a running `gozzard dev` with the page in it.
type Fleet struct {
	*fleettest.Dev
	Client *client.Client // may do everything
}

// StartFleet runs `gozzard dev` with a number of hosts. It skips the test where no browser or no page is.
func StartFleet(t testing.TB, hosts int, extra ...string) *Fleet {
	t.Helper()
	need(t)
	f := &Fleet{Dev: fleettest.StartDev(t, hosts, extra...)}
	c, err := client.New(f.Cred.URL, client.Credentials{AppCode: f.Cred.AppCode, AppSecret: f.Cred.Secret,
		Username: f.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}
	f.Client = c
	t.Cleanup(func() {
		f.killAll(t)
		c.Close()
	})
	return f
}

// killAll ends every process of the fleet: they would outlive the program.
func (f *Fleet) killAll(t testing.TB) {
	ctx, stop := context.WithTimeout(context.Background(), Patience)
	defer stop()
	op := client.Operation{Action: "kill", Selection: client.Selection{Names: []string{"*"}, All: true}}
	preview, err := f.Client.Preview(ctx, op)
	if gozzard.KindOf(err) == gozzard.ErrNotFound {
		return
	}
	op.Confirm = preview.Targets
	task, err := f.Client.Operate(ctx, op)
	if err == nil {
		_, err = f.Client.Wait(ctx, task.TaskID, nil)
	}
	if err != nil {
		t.Errorf("cannot end the processes of the fleet: %v", err)
	}
}

// Define registers a definition, in YAML.
func (f *Fleet) Define(t testing.TB, doc string) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	task, err := f.Client.RegisterDocument(t.Context(), b)
	f.done(t, task, err)
}

// Operate performs an action on processes by their names, wherever they are, and waits until it is done.
func (f *Fleet) Operate(t testing.TB, action string, names ...string) {
	t.Helper()
	op := client.Operation{Action: action, Selection: client.Selection{Names: names, All: true}}
	preview, err := f.Client.Preview(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	op.Confirm = preview.Targets
	task, err := f.Client.Operate(t.Context(), op)
	f.done(t, task, err)
}

// done waits for the end of a task. Every target must have succeeded.
func (f *Fleet) done(t testing.TB, a client.Accepted, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	task, err := f.Client.Wait(t.Context(), a.TaskID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if task.Counts.Failed > 0 {
		t.Fatalf("task %s: %+v", a.TaskID, task.Attempts)
	}
}

// Process is a process by its name, on the first host that has it.
func (f *Fleet) Process(t testing.TB, name string) client.Process {
	t.Helper()
	page, err := f.Client.Processes(t.Context(), client.ProcessQuery{Names: []string{name}}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Processes) == 0 {
		t.Fatalf("there is no process %s", name)
	}
	return page.Processes[0]
}

// Open opens a new tab, with cookies and storage of its own, on the console. Nobody is signed in.
func (f *Fleet) Open(t testing.TB) *Page {
	t.Helper()
	p := NewPage(t, strings.TrimRight(f.Cred.URL, "/"))
	p.fleet = f
	p.Go("/console/")
	return p
}

// AddUser makes a user with a password, and with grants.
func (f *Fleet) AddUser(t testing.TB, name, password string, grants ...client.Grant) {
	t.Helper()
	if err := f.Client.CreateUser(t.Context(), name, password, grants); err != nil {
		t.Fatalf("cannot make user %s: %v", name, err)
	}
}

// EnterByLink signs in by a one-time link, as the administrator of the fleet.
func (p *Page) EnterByLink() {
	p.t.Helper()
	link, err := p.fleet.Client.ConsoleLink(p.t.Context())
	if err != nil {
		p.t.Fatalf("cannot make a link: %v", err)
	}
	u, err := url.Parse(link.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Go(u.RequestURI())
	p.Wait("navigation", "")
}

// SignIn signs in by the form. It does not wait for what comes of it.
func (p *Page) SignIn(user, password string) {
	p.t.Helper()
	p.Fill("Name", user)
	p.Fill("Password", password)
	p.Click("button", "Sign in")
}

// Do sends a request to the native API as the page does: with the cookie of this tab, and with the proof that a page of
// this server sends it. It returns the status.
func (p *Page) Do(method, path string) int {
	p.t.Helper()
	var status int
	p.Eval(`(async () => {
		const s = await (await fetch("/api/v1/session")).json();
		const a = await fetch(`+quote(path)+`, {method: `+quote(method)+`, headers: {"X-Gozzard-CSRF": s.csrf ?? ""}});
		return a.status;
	})()`, &status)
	if status == 0 || status == http.StatusNotFound {
		p.t.Fatalf("%s %s: status %d", method, path, status)
	}
	return status
}
