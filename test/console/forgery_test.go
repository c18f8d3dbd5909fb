//go:build linux

package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// jewel is a name that no other page may read.
const jewel = "crown-jewel"

// attacks is what a page of an attacker tries against the console of the same browser: to change something in every way
// in which a page can make a browser send a request, and to read something in every way in which it can look at an answer.
// It answers with what it has read, and with what it could not even try.
const attacks = `(async (target) => {
	const read = {}, user = JSON.stringify({name: "evil", password: "a password of some length"});
	const stop = JSON.stringify({action: "stop", names: ["*"], all: true, confirm: 1});
	const attempt = async (what, f) => {
		const late = new Promise((done) => setTimeout(done, 20000, "did not end"));
		try { read[what] = String(await Promise.race([f(), late]) ?? ""); } catch (e) { read[what] = "refused: " + e; }
	};
	const api = (path) => target + "/api/v1" + path;
	const loads = (e) => new Promise((done) => { e.onload = () => done("loaded"); e.onerror = () => done("refused"); document.body.append(e); });
	const element = (name, fields) => Object.assign(document.createElement(name), fields);

	// Requests of scripts.
	for (const path of ["/processes", "/users", "/session", "/live/snapshot", "/audit?after=0&limit=10"]) {
		await attempt("fetch " + path, async () => (await fetch(api(path), {credentials: "include"})).text());
		await attempt("blind fetch " + path, async () => (await fetch(api(path), {credentials: "include", mode: "no-cors"})).text());
	}
	for (const [path, body] of [["/users", user], ["/operations", stop]]) {
		const post = (more) => fetch(api(path), {method: "POST", credentials: "include", body, ...more}).then((a) => a.text());
		await attempt("plain POST " + path, () => post({mode: "no-cors", headers: {"Content-Type": "text/plain"}}));
		await attempt("JSON POST " + path, () => post({headers: {"Content-Type": "application/json", "X-Gozzard-CSRF": "guess"}}));
		await attempt("beacon " + path, () => { navigator.sendBeacon(api(path), new Blob([body], {type: "text/plain"})); });
	}
	await attempt("DELETE", async () => (await fetch(api("/users/victim"), {method: "DELETE", credentials: "include"})).text());

	// Forms, whose answers go into a frame.
	for (const [path, body] of [["/users", user], ["/operations", stop]]) for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
		await attempt("form " + path + " " + enctype, async () => {
			const frame = element("iframe", {name: "f" + Math.random()});
			document.body.append(frame);
			const form = element("form", {method: "POST", action: api(path), enctype, target: frame.name});
			form.append(element("input", {name: body.slice(0, -1) + ',"x":"', value: '"}'}));
			document.body.append(form);
			const done = new Promise((done) => { frame.onload = done; });
			form.submit();
			await done;
			return frame.contentDocument?.body?.innerText ?? "";
		});
	}

	// What a page can include, frame or open.
	for (const path of ["/api/v1/processes", "/api/v1/users", "/console/"]) {
		await attempt("script " + path, () => loads(element("script", {src: target + path})));
		await attempt("image " + path, () => loads(element("img", {src: target + path})));
		await attempt("style " + path, () => loads(element("link", {rel: "stylesheet", href: target + path})));
		await attempt("frame " + path, async () => {
			const frame = element("iframe", {src: target + path});
			await loads(frame);
			return frame.contentDocument?.body?.innerText ?? "";
		});
		await attempt("window " + path, async () => {
			const w = open(target + path);
			if (!w) return "did not end: no window";
			for (let i = 0; i < 20 && !w.closed; i++) await new Promise((done) => setTimeout(done, 50));
			try { return w.document.body.innerText; } finally { w.close(); }
		});
	}

	// Streams.
	await attempt("stream", () => new Promise((done) => {
		const s = new EventSource(api("/live/stream"), {withCredentials: true});
		s.onmessage = s.onopen = () => { s.close(); done("opened"); };
		s.onerror = () => { s.close(); done("refused"); };
	}));
	await attempt("socket", () => new Promise((done) => {
		const s = new WebSocket(api("/live/stream").replace("http", "ws"));
		s.onopen = () => done("opened");
		s.onerror = () => done("refused");
	}));
	return read;
})`

// evilPage serves an empty page without any policy, and returns its port.
func evilPage(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>evil</title><body>evil"))
	}))
	t.Cleanup(s.Close)
	return portOf(t, s.URL)
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// changes are the rows of the audit after a row that are not about refused requests.
func changes(t *testing.T, c *client.Client, after int64) (list []client.AuditRow, head int64) {
	t.Helper()
	page, err := c.Audit(t.Context(), after, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Rows {
		// A request of another site has no cookie, so it is a failed login or has no right.
		if act := page.Rows[i].Act; !strings.HasPrefix(act, "refused") && act != "login:failed" {
			list = append(list, page.Rows[i])
		}
	}
	return list, page.Head.Seq
}

// attack runs the attacks in a tab beside that of a signed-in person, from an address, and looks for what came of them.
func attack(t *testing.T, p *console.Page, c *client.Client, from, target string) {
	t.Helper()
	_, before := changes(t, c, 0)
	q := p.Beside()
	q.Allow("") // the browser reports what it refuses
	q.Visit(from)
	q.WaitText("evil")
	var read map[string]string
	q.Eval(attacks+"("+quoted(target)+")", &read)

	for what, got := range read {
		for _, secret := range []string{jewel, "victim", "csrf", "opened", "loaded", "did not end", "Overview"} {
			if strings.Contains(got, secret) {
				t.Errorf("from %s: %s: %s", from, what, got)
			}
		}
	}
	if len(read) < 30 {
		t.Errorf("from %s: only %d attacks were tried: %v", from, len(read), read)
	}

	list, _ := changes(t, c, before)
	for i := range list {
		t.Errorf("from %s: it was done: %+v", from, list[i])
	}
}

// TestTE19PagesInABrowser: pages of another site, and of another port of the same machine, in the browser of an admin that
// is signed in. Nothing is done, and nothing is read. The page of the server itself does the same at the end.
func TestTE19PagesInABrowser(t *testing.T) {
	t.Parallel()
	port := evilPage(t)
	evil := []string{"http://127.0.0.1:" + port, "http://localhost:" + port, "http://" + console.EvilHost + ":" + port}

	t.Run("dev", func(t *testing.T) {
		t.Parallel()
		f := console.StartFleet(t, 1)
		f.Define(t, "{namespace: keys, name: "+jewel+", command: exec sleep 1000, start_check: 1s}")
		f.Operate(t, "start", jewel)
		f.AddUser(t, "victim", password, client.Grant{Role: "admin"})
		pid := f.Process(t, jewel).PID
		p := f.Open(t)
		p.SignIn("victim", password)
		p.WaitText(jewel)
		for _, from := range evil {
			attack(t, p, f.Client, from, strings.TrimRight(f.Cred.URL, "/"))
		}
		if now := f.Process(t, jewel); now.PID != pid || now.State != client.StateRunning {
			t.Errorf("the process is %+v", now)
		}
		attacksWork(t, p, f.Client)
	})

	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := console.StartServer(t)
		s.AddUser(t, "victim", password, client.Grant{Role: "admin"})
		p := s.Open(t)
		p.SignIn("victim", password)
		p.Wait("navigation", "Pages")
		for _, from := range []string{evil[0], evil[2]} {
			attack(t, p, s.Client, from, strings.TrimRight(s.Cred.URL, "/"))
		}
		attacksWork(t, p, s.Client)
	})
}

// attacksWork shows that the session of the page was open all the time, and that the same requests work from it.
func attacksWork(t *testing.T, p *console.Page, c *client.Client) {
	t.Helper()
	var answer string
	p.Eval(`(async () => {
		const s = await (await fetch("/api/v1/session")).json();
		const post = await fetch("/api/v1/users", {method: "POST", headers: {"X-Gozzard-CSRF": s.csrf, "Content-Type": "application/json"},
			body: JSON.stringify({name: "good", password: "a password of some length"})});
		return s.user + " " + post.status;
	})()`, &answer)
	if answer != "victim 201" {
		t.Errorf("the session of the page: %s", answer)
	}
	users, err := c.Users(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users.Users {
		if u.Name == "evil" {
			t.Error("an attack has made a user")
		}
	}
}

// TestTE9ReboundName: a page whose name points to this machine is of the same origin as the server for the browser. It gets
// neither the page nor the API of a fleet on this machine.
func TestTE9ReboundName(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	f.AddUser(t, "victim", password, client.Grant{Role: "admin"})
	p := f.Open(t)
	p.SignIn("victim", password)
	p.Wait("navigation", "Pages")
	_, before := changes(t, f.Client, 0)

	q := p.Beside()
	q.Allow("")
	q.Visit("http://" + console.EvilHost + ":" + portOf(t, f.Cred.URL) + "/console/")
	q.WaitText("this server answers to localhost")
	var answers map[string]int
	q.Eval(`(async () => {
		const answers = {}, body = JSON.stringify({user: "victim", password: `+quoted(password)+`});
		for (const path of ["/", "/console/", "/api/v1/processes", "/api/v1/session", "/api/v1/session/ways", "/api/v1/openapi.json",
			"/api/v1/live/snapshot", "/metrics", "/healthz", "/api/c/compapi/v2/gse/get_proc_status/"]) answers[path] = (await fetch(path)).status;
		answers["sign in"] = (await fetch("/api/v1/session", {method: "POST", body, headers: {"Content-Type": "application/json"}})).status;
		return answers;
	})()`, &answers)
	for what, status := range answers {
		if status < 400 {
			t.Errorf("%s: %d", what, status)
		}
	}
	if list, _ := changes(t, f.Client, before); len(list) > 0 {
		t.Errorf("it was done: %+v", list)
	}
	if list := sessions(t, f, "victim"); len(list) != 1 {
		t.Errorf("sessions: %+v", list)
	}
}
