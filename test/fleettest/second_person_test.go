//go:build linux

package fleettest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// people is a fleet with two admins, alice and bob, and a user without rights, carol.
type people struct {
	*keyFleet
	alice, bob string // files of credentials
	password   string
}

func startPeople(t *testing.T, hosts int, flags ...string) *people {
	t.Helper()
	p := &people{keyFleet: startKeyFleet(t, nil), password: filepath.Join(t.TempDir(), "password")}
	put(t, p.password, []byte("correct horse battery staple\n"), 0o600)
	login := func(name string, more ...string) string {
		out := filepath.Join(t.TempDir(), name+".json")
		p.must(append([]string{"user", "create", name, "--password-file", p.password}, more...)...)
		p.must("user", "login", name, "--password-file", p.password, "--out", out)
		return out
	}
	p.alice, p.bob = login("alice", "--role", "admin"), login("bob", "--role", "admin")
	login("carol")
	for n := range hosts {
		p.join(n + 1)
	}
	p.againWith(flags...)
	return p
}

// as runs a command as a person.
func (p *people) as(cred string, args ...string) string {
	p.t.Helper()
	out, err := p.tryAs(cred, args...)
	if err != nil {
		p.t.Fatalf("gozzard %q: %v\n%s", args, err, out)
	}
	return out
}

// refusedTo runs a command as a person that must fail with a text.
func (p *people) refusedTo(cred, text string, args ...string) string {
	p.t.Helper()
	out, err := p.tryAs(cred, args...)
	if err == nil || !strings.Contains(out, text) {
		p.t.Fatalf("gozzard %q: %v, want a refusal with %q\n%s", args, err, text, out)
	}
	return out
}

// held runs a command as a person that must wait, and returns the request.
func (p *people) held(cred string, args ...string) client.Request {
	p.t.Helper()
	p.refusedTo(cred, "for another person", args...)
	r := p.requests()[0]
	if r.State != "waiting" {
		p.t.Fatalf("the request is %+v", r)
	}
	return r
}

// requests lists all requests, the newest first.
func (p *people) requests() []client.Request {
	p.t.Helper()
	var list client.RequestList
	if err := json.Unmarshal([]byte(p.as(p.bob, "request", "list", "-o", "json")), &list); err != nil {
		p.t.Fatal(err)
	}
	return list.Requests
}

// approve are the arguments that approve a request.
func approve(r client.Request) []string {
	return []string{"request", "approve", strconv.FormatInt(r.ID, 10), r.Digest}
}

// change writes a copy of a file of credentials with other fields.
func (p *people) change(cred string, set map[string]string) string {
	p.t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(read(p.t, cred), &fields); err != nil {
		p.t.Fatal(err)
	}
	for k, v := range set {
		fields[k] = v
	}
	b, err := json.Marshal(fields)
	if err != nil {
		p.t.Fatal(err)
	}
	out := filepath.Join(p.t.TempDir(), "cred.json")
	put(p.t, out, b, 0o600)
	return out
}

// tokenFor makes a token of a person for the app admin.
func (p *people) tokenFor(cred, name string) string {
	p.t.Helper()
	return strings.TrimSpace(p.as(cred, "user", "token", "create", name, "--for-app", "admin", "--password-file", p.password))
}

// TestTT13SecondPersonForAdmins: no single person makes an admin, by any app, token, new account or foreign login.
func TestTT13SecondPersonForAdmins(t *testing.T) {
	t.Parallel() // it mostly waits
	p := startPeople(t, 0, "--second-person", "admin-grants")
	isAdmin := func() bool { return strings.Contains(p.as(p.bob, "grant", "list"), "user carol") }
	wish := []string{"grant", "add", "--user", "carol", "--role", "admin"}

	// An app cannot ask, also not for a user that it names. A person can, and nothing changes.
	p.refusedTo(p.cred, "an app cannot ask", wish...)
	r := p.held(p.alice, wish...)
	if r.User != "alice" || r.Kind != "admin-grant" || !strings.Contains(r.What, "user carol") || isAdmin() {
		t.Fatalf("the request is %+v", r)
	}

	// The same person does not approve it: by the same token, by another one, or behind an app.
	made := strings.TrimSpace(p.as(p.alice, "user", "token", "create", "alice", "--password-file", p.password))
	for _, cred := range []string{p.alice, p.change(p.alice, map[string]string{"bk_token": made}),
		p.change(p.cred, map[string]string{"bk_token": p.tokenFor(p.alice, "alice"), "bk_username": ""})} {
		p.refusedTo(cred, "another person must approve", approve(r)...)
	}

	// An app does not approve it: for a user that it names, nor with the token of another person.
	p.refusedTo(p.change(p.cred, map[string]string{"bk_username": "bob"}), "an app cannot approve", approve(r)...)
	p.refusedTo(p.change(p.cred, map[string]string{"bk_token": p.tokenFor(p.bob, "bob"), "bk_username": ""}),
		"an app cannot approve", approve(r)...)

	// Nor does alice make a second person, or become one.
	p.refusedTo(p.alice, "second person", "user", "create", "eve", "--password-file", p.password, "--role", "admin")
	p.refusedTo(p.alice, "second person", "app", "create", "eve", "--role", "admin")
	p.refusedTo(p.alice, "second person", "user", "token", "create", "bob", "--password-file", p.password)
	p.refusedTo(p.alice, "second person", "user", "password", "bob", "--password-file", p.password)
	p.refusedTo(p.alice, "second person", "app", "rotate", "admin")
	group := p.held(p.alice, "grant", "add", "--group", "/fleet/ops", "--role", "admin")
	p.as(p.bob, "request", "reject", strconv.FormatInt(group.ID, 10))

	// Another person approves exactly this, once.
	wrong := r
	wrong.Digest = strings.Repeat("0", len(r.Digest))
	p.refusedTo(p.bob, "look at it again", approve(wrong)...)
	if isAdmin() {
		t.Fatal("a refused request was carried out")
	}
	p.as(p.bob, approve(r)...)
	if !isAdmin() {
		t.Fatalf("the grant is missing: %+v", p.requests())
	}
	p.refusedTo(p.bob, "is approved", approve(r)...)

	// Other grants do not wait, and both acts are in the audit.
	p.as(p.alice, "grant", "add", "--user", "carol", "--role", "viewer")
	out := p.as(p.bob, "audit", "list")
	for _, want := range []string{"request:ask:", "request:approve:", "grant:add user carol admin"} {
		if !strings.Contains(out, want) {
			t.Errorf("the audit has no %q: %s", want, out)
		}
	}

	// A request that waited too long is worthless, also after a start of the server.
	p.againWith("--second-person-wait", "8s")
	p.as(p.bob, "grant", "remove", "--user", "carol", "--role", "admin")
	late := p.held(p.alice, wish...)
	ft.Until(t, time.Minute, func() string { return "it does not expire" },
		func() bool { return p.requests()[0].State == "expired" })
	p.refusedTo(p.bob, "is expired", approve(late)...)
}

// TestTT14SecondPersonForHosts: a revoked host does not come back, and root does not reach many hosts, by one person:
// not by small steps, not through another door, and not with a token from before.
func TestTT14SecondPersonForHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	p := startPeople(t, 2, "--second-person", "revoked-hosts,root-hosts=1", "--second-person", "admin-grants")
	p.register(1) // by the app admin: it is a person of its own
	p.online(1, true)
	p.online(2, true)
	reload := func(n string) []string {
		return []string{"reload", p.daemon.Name, "-n", "keys", "--host", "127.0.0." + n}
	}

	// Another door refuses, whatever app it is.
	doc := p.define(2)
	p.refusedTo(p.cred, "an app cannot ask", "register", "-f", doc)

	// Alice defines the process on the second host, and reaches the first one by a second step.
	p.as(p.alice, "register", "-f", doc)
	p.as(p.bob, "start", p.daemon.Name, "-n", "keys", "--host", "127.0.0.1")
	r := p.held(p.alice, reload("1")...)
	if p.daemon.Count("reload") != 0 || r.Kind != "root-command" {
		t.Fatalf("it ran before the approval: %+v", r)
	}
	p.as(p.bob, "request", "reject", strconv.FormatInt(r.ID, 10))
	p.refusedTo(p.bob, "is rejected", approve(r)...)

	// With an approval it runs once.
	r = p.held(p.alice, reload("1")...)
	p.as(p.bob, approve(r)...)
	ft.Until(t, time.Minute, func() string { return "it does not run" }, func() bool { return p.daemon.Count("reload") == 1 })
	p.as(p.alice, reload("2")...) // known within the hour

	// Revoke the second host. A token from before does not bring it back.
	var members struct{ Hosts []client.HostInfo }
	if err := json.Unmarshal([]byte(p.must("hosts", "-o", "json")), &members); err != nil {
		t.Fatal(err)
	}
	var agent string
	for _, h := range members.Hosts {
		if len(h.Addrs) > 0 && strings.Contains(h.Addrs[0].IP, "127.0.0.2") {
			agent = string(h.Agent)
		}
	}
	early := p.as(p.alice, "token", "create", "--agent", agent)
	p.as(p.alice, "hosts", "revoke", agent)
	join := func(token string) (string, error) {
		file := filepath.Join(t.TempDir(), "token")
		put(t, file, []byte(token), 0o600)
		return p.try("agent", "join", "--server", p.url, "--token-file", file, "--data", p.states[1], "--ip", "127.0.0.2")
	}
	if out, err := join(early); err == nil {
		t.Fatalf("a token from before the revocation brings the host back: %s", out)
	}

	// A new one is worthless until another person has approved it.
	p.agents[1].Kill(syscall.SIGTERM)
	out, err := p.tryAs(p.alice, "token", "create", "--agent", agent)
	token, _, _ := strings.Cut(out, "\n")
	if err == nil || !strings.HasPrefix(token, "gz1.") {
		t.Fatalf("token: %v %s", err, out)
	}
	r = p.requests()[0]
	if out, err := join(token); err == nil {
		t.Fatalf("the host is back without an approval: %s", out)
	}
	p.refusedTo(p.alice, "another person must approve", approve(r)...)
	p.as(p.bob, approve(r)...)
	if out, err := join(token); err != nil {
		t.Fatalf("the approved token does not work: %v %s", err, out)
	}
	p.agents[1].Again()
	p.online(2, true)
	if _, err := os.Stat(filepath.Join(p.states[1], "enrolment.json")); err != nil {
		t.Fatal(err)
	}
}
