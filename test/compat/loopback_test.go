//go:build linux

package compat_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loopback is the fixture of a server whose agents joined by its secret. The server and the agent of 127.0.0.2 were
// killed in the middle of an operation.
type loopback struct {
	*server
	dir     string
	version string
}

func TestLoopback(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		dir := unpack(t, version, "loopback")
		l := &loopback{dir: dir, version: version, server: newServer(t, filepath.Join(dir, "server"))}

		// Each step needs what the one before has left. The record is asked first, while no agent can change it.
		l.resolve(t, 2)
		l.begin(t)
		t.Run("answers", func(t *testing.T) { l.at(t).answers() })
		t.Run("accounts", func(t *testing.T) { l.at(t).accounts() })
		t.Run("audit", func(t *testing.T) { l.at(t).auditVerifies() })
		t.Run("repeated", func(t *testing.T) { l.at(t).repeatedRequest() })
		l.stop(syscall.SIGTERM)

		// The agents start without a server: their own disks say what must run.
		acts := map[int]string{}
		for n := range l.startAgents(t) {
			acts[n] = read(t, filepath.Join(l.agentDir(n), "acts.log"))
		}

		if !t.Run("alone", func(t *testing.T) { l.at(t).alone() }) {
			return
		}

		// The server is back.
		l.begin(t)

		for _, step := range []struct {
			name string
			run  func(*loopback)
		}{
			{"online", (*loopback).agentsOnline}, {"interrupted", (*loopback).interrupted}, {"kept", (*loopback).kept},
			{"works", (*loopback).works}, {"business", (*loopback).business},
			{"acts", func(l *loopback) { l.actsGoOn(acts) }},
		} {
			if !t.Run(step.name, func(t *testing.T) { step.run(l.at(t)) }) {
				return
			}
		}
	})
}

// at has the fleet report its failures to a subtest.
func (l *loopback) at(t *testing.T) *loopback {
	c, s, d := *l, *l.server, *l.server.daemon
	d.t, s.daemon, c.server = t, &d, &s
	return &c
}

// answers compares everything in the record, while no agent is connected that could change it.
func (l *loopback) answers() {
	l.ownAnswers()
	tasks := l.tasks()
	if len(tasks) < 30 {
		l.t.Fatalf("the audit has %d tasks only", len(tasks))
	}

	g := newGolden(l.t, l.version, "loopback-gse")
	for _, task := range tasks {
		l.ask(g, gse+"get_proc_operate_result/", `{"task_id":"`+task+`"}`)
		l.ask(g, "/api/v2/proc/get_proc_operate_result_v2", `{"task_id":"`+task+`"}`)
	}

	const hosts = `"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0,"bk_supplier_id":0},` +
		`{"ip":"127.0.0.2","bk_cloud_id":0,"bk_supplier_id":0}]`
	l.ask(g, gse+"get_process_group_info/", `{"meta":{"namespace":"demo"},`+hosts+`}`)

	for _, name := range []string{"web", "front", "tick", "once", "broken", "stopped", "loose", "hosted", "killed",
		"gone", "registered", "kept", "slow"} {
		l.ask(g, gse+"get_proc_status/", `{"meta":{"namespace":"demo","name":"`+name+`"},`+hosts+`}`)
	}

	l.ask(g, gse+"sync_proc_status/", `{"meta":{"namespace":"demo"},"page":{"start":0,"limit":100}}`)
	l.ask(g, gse+"get_agent_status/", `{`+hosts+`}`)
	g.compare()

	g = newGolden(l.t, l.version, "loopback-job")
	for _, task := range tasks {
		l.ask(g, job+"get_proc_result/", `{"bk_biz_id":1,"bk_gse_taskid":"`+task+`"}`)
	}

	g.compare()
	l.gsekitAnswers()
}

// tasks lists all tasks that the audit names.
func (l *loopback) tasks() (ids []string) {
	l.t.Helper()
	var page struct {
		Rows []struct {
			Task string `json:"task_id"`
		} `json:"rows"`
	}
	l.get("/api/v1/audit?limit=1000", &page)

	for _, r := range page.Rows {
		if r.Task != "" && !slices.Contains(ids, r.Task) {
			ids = append(ids, r.Task)
		}
	}

	return ids
}

// ask adds an answer of a BlueKing door.
func (l *loopback) ask(g *golden, path, body string) {
	l.t.Helper()
	status, answer := l.call(l.admin, http.MethodPost, path, body)
	g.bytes("POST "+path+" "+body, status, answer)
}

func (l *loopback) gsekitAnswers() {
	g := newGolden(l.t, l.version, "loopback-gsekit")
	get := func(path string) {
		status, answer := l.call(l.admin, http.MethodGet, path, "")
		g.bytes("GET "+path, status, answer)
	}

	const app = "/o/bk_gsekit/api/2/"
	for _, id := range lines(l.t, filepath.Join(l.data, "jobs.list")) {
		l.ask(g, gsekit+"job/job_status/", `{"bk_biz_id":2,"job_id":`+id+`}`)
		l.ask(g, app+"job/"+id+"/job_task/", `{"page":1,"pagesize":100}`)
		get(app + "job/" + id + "/")
		get(app + "job/" + id + "/job_task_statistics/")
		get(app + "job/" + id + "/search_ip/")
	}

	get(app + "job/?page=1&pagesize=100")
	get(app + "meta/access_overview/")
	l.ask(g, gsekit+"config_template/config_template_list/", `{"bk_biz_id":2}`)
	l.ask(g, gsekit+"process/process_status/", `{"bk_biz_id":2,"scope":{"bk_set_env":"3"},"page":1,"pagesize":100}`)
	l.ask(g, gsekit+"process/process_status/", `{"bk_biz_id":3,"scope":{"bk_set_env":"1"},"page":1,"pagesize":100}`)
	l.ask(g, gsekit+"process/process_status/", `{"bk_biz_id":2,"expression_scope":`+
		`{"bk_set_env":"3","bk_set_name":"front","bk_process_id":"4[6-7]"},"page":1,"pagesize":100}`)
	g.compare()
}

// ownAnswers compares what our own API and commands say.
func (l *loopback) ownAnswers() {
	g := newGolden(l.t, l.version, "loopback-own")
	get := func(path string) {
		status, answer := l.call(l.admin, http.MethodGet, path, "")
		g.document("GET "+path, status, answer)
	}

	for _, path := range []string{"processes?limit=1000", "hosts?limit=100", "topology", "topology/2", "topology/3",
		"topology/2/tree", "apps", "users", "grants", "users/alice/tokens", "users/carol@example.com/tokens",
		"audit?limit=1000", "restore", "enrol/agents"} {
		get("/api/v1/" + path)
	}

	for _, task := range l.tasks() {
		get("/api/v1/tasks/" + url.PathEscape(task))
	}

	for _, biz := range []string{"2", "3"} {
		out := must(l.t, l.asAdmin(), "topology", "export", biz, "-o", "json")
		g.document("gozzard topology export "+biz, 0, []byte(out))
	}

	g.document("gozzard key list", 0, []byte(must(l.t, nil, "key", "list", "--data", l.data, "-o", "json")))
	g.compare()
}

// accounts checks that every account still works, with the same rights, and that wrong or expired ones do not.
func (l *loopback) accounts() {
	g := newGolden(l.t, l.version, "loopback-accounts")
	rotated := readCredentials(l.t, filepath.Join(l.data, "rotated-old.json"))
	rotated.Username = "somebody"
	renewed := rotated
	renewed.Secret = strings.TrimSpace(read(l.t, filepath.Join(l.data, "rotated-new.secret")))
	wrong := rotated
	wrong.Secret = "wrong"
	shop := readCredentials(l.t, filepath.Join(l.data, "shop.json"))
	shop.Username = "alice"
	callers := map[string]credentials{
		"admin": l.admin, "shop for alice": shop,
		"the old secret": rotated, "the new secret": renewed, "a wrong secret": wrong,
		"a personal token":   readCredentials(l.t, filepath.Join(l.data, "alice.json")),
		"a session":          readCredentials(l.t, filepath.Join(l.data, "alice-session.json")),
		"a token that ended": {Token: strings.TrimSpace(read(l.t, filepath.Join(l.data, "carol.token")))},
	}
	names := make([]string, 0, len(callers))
	for name := range callers {
		names = append(names, name)
	}

	slices.Sort(names)

	for _, name := range names {
		for _, path := range []string{"/api/v1/whoami", "/api/v1/processes?limit=1000", "/api/v1/users"} {
			status, answer := l.call(callers[name], http.MethodGet, path, "")
			g.document(name+": GET "+path, status, answer)
		}
	}

	g.compare()
	l.signed()

	password := filepath.Join(l.data, "password")
	out := filepath.Join(l.t.TempDir(), "alice.json")
	must(l.t, l.asAdmin(), "user", "login", "alice", "--password-file", password, "--out", out)

	if got := readCredentials(l.t, out); got.Token == "" {
		l.t.Error("alice logged in and has no token")
	}

	_, code := run(l.t, l.asAdmin(), "user", "login", "bob", "--password-file", password, "--out", out+"2")
	if code != 4 {
		l.t.Errorf("bob is disabled; the login ended with exit code %d, not 4", code)
	}
}

// signed authenticates an app by a signature, which needs the secret in the record.
func (l *loopback) signed() {
	signer := readCredentials(l.t, filepath.Join(l.data, "signer.json"))

	accepted := func(key string) bool {
		const path, body = gse + "get_agent_status/", `{"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0}]}`
		query := fmt.Sprintf("?bk_app_code=signer&bk_nonce=%s&bk_timestamp=%d&bk_username=somebody",
			strings.ToLower(rand.Text()), time.Now().Unix())
		h := hmac.New(sha1.New, []byte(key))
		h.Write([]byte(http.MethodPost + path + query + "&data=" + body))
		signature := url.QueryEscape(base64.StdEncoding.EncodeToString(h.Sum(nil)))
		_, answer := l.call(credentials{}, http.MethodPost, path+query+"&bk_signature="+signature, body)
		return strings.Contains(string(answer), `"result":true`)
	}
	if !accepted(signer.Secret) {
		l.t.Error("the signature of the app is refused")
	}
	if accepted("wrong") {
		l.t.Error("a wrong signature is accepted")
	}
}

// auditVerifies verifies the chain of the old rows, with the checkpoints and the newest row that the old program signed
// and printed.
func (l *loopback) auditVerifies() {
	newest := strings.TrimSpace(read(l.t, filepath.Join(l.data, "audit.newest")))
	must(l.t, l.asAdmin(), "audit", "verify", "--expect", newest)
	must(l.t, nil, "audit", "verify", "--data", l.data, "--expect", newest)
	if n := strings.Count(read(l.t, filepath.Join(l.data, "audit.checkpoints")), "\n"); n < 2 {
		l.t.Errorf("there are %d checkpoints", n)
	}

	row, hash, _ := strings.Cut(newest, ":")
	other := strings.Repeat("0", len(hash))
	if _, code := run(l.t, nil, "audit", "verify", "--data", l.data, "--expect", row+":"+other); code != 1 {
		l.t.Errorf("another hash ended with exit code %d, not 1", code)
	}
}

// repeatedRequest repeats a request of the old record by its idempotency key: it gets its old task.
func (l *loopback) repeatedRequest() {
	const body = `{"meta":{"namespace":"demo","name":"stopped"},` +
		`"hosts":[{"ip":"127.0.0.1","bk_cloud_id":0,"bk_supplier_id":0}],"op_type":1}`
	_, answer := l.call(l.admin, http.MethodPost, gse+"operate_proc/", body, "Idempotency-Key", "compat-1")
	want := lines(l.t, filepath.Join(l.data, "tasks.list"))[2]
	if !strings.Contains(string(answer), `"`+want+`"`) {
		l.t.Errorf("answer %s, want task %s", answer, want)
	}
}
