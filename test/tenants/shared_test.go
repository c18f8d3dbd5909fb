//go:build linux

package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// shared is a fleet of the built program: a server, a host that all tenants share, and a host of each. Every tenant has
// an account, a business and real processes.
type shared struct {
	t        testing.TB
	g        *ground
	j        *judge
	s        *ft.Server
	client   *http.Client
	secrets  map[string]string // of apps
	agentIDs map[int]string    // of hosts

	mu      sync.Mutex
	sent    int
	open    map[string]string // tasks that may have no verdict yet, with the apps that made them
	tasks   []string
	madeBy  map[string]*party
	jobs    map[int]*party // that may not have ended
	lastJob int
	digests []string       // of definitions
	asked   map[string]int // requests by door and outcome
	paths   map[string]bool
}

func newShared(t testing.TB) *shared {
	t.Helper()
	g := newGround(t)
	w := &shared{t: t, g: g, j: newJudge(t, g.dir, g.parties...), s: ft.StartServer(t, ""),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, secrets: map[string]string{},
		agentIDs: map[int]string{}, madeBy: map[string]*party{}, open: map[string]string{},
		jobs: map[int]*party{}, asked: map[string]int{}, paths: map[string]bool{}}
	t.Cleanup(w.client.CloseIdleConnections)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	w.secrets["admin"] = w.s.Cred.Secret

	// The hosts: one for all, one for each.
	for host := 1; host <= 4; host++ {
		w.j.agents[w.s.StartAgent(t, host, "").PID()] = host
	}
	var hosts struct {
		Hosts []struct {
			Agent string
			Addrs []struct{ IP string }
		}
	}
	w.admin(http.MethodGet, "/api/v1/hosts", nil, &hosts)
	for _, h := range hosts.Hosts {
		for _, a := range h.Addrs {
			if n, err := strconv.Atoi(strings.TrimPrefix(a.IP, "127.0.0.")); err == nil {
				w.agentIDs[n] = h.Agent
			}
		}
	}
	if len(w.agentIDs) != 4 {
		t.Fatalf("hosts: %+v", hosts)
	}

	// The tenants: no networks, the topology says their hosts. The boss of each is an admin of its business.
	for _, p := range g.parties[:3] {
		w.admin(http.MethodPut, fmt.Sprint("/api/v1/topology/", p.biz), w.document(p), nil)
		for code, role := range map[string]string{p.name: "operator", p.name + "-boss": "admin"} {
			var made struct{ Secret string }
			w.admin(http.MethodPost, "/api/v1/apps", object{"code": code, "asserts_users": true, "unknown_users": true,
				"grants": []any{object{"role": role, "businesses": []int{p.biz}, "accounts": []string{p.account}}}}, &made)
			w.secrets[code] = made.Secret
		}
	}
	root := g.party("root")
	g.as(root, "start", root.mark+"-test-1", g.pidFile(root, "v-api"))
	return w
}

// document is the business of a tenant: the same process on the shared host and on its own.
func (w *shared) document(p *party) string {
	var instances []string
	for i, host := range p.hosts {
		pidFile := w.g.pidFile(p, []string{"v-kit", "v-kit-own"}[i])
		command := func(event string) string {
			return fmt.Sprintf("%q", strings.Join([]string{w.g.life, event, p.mark + "-gsekit-0", pidFile}, " "))
		}
		instances = append(instances, fmt.Sprintf(`{id: %d, name: %s-1, host: {ip: 127.0.0.%d, cloud: 0}, processes: [{
      id: %d, name: java, func_name: life, user: %s, work_path: %s, pid_file: %s, start_cmd: %s, stop_cmd: %s,
      restart_cmd: %s, reload_cmd: %s, face_stop_cmd: %s, timeout: 20, start_check_secs: 1}]}`, i+1, p.mark, host, 41+i,
			p.account, p.dir, pidFile, command("start"), command("stop"), command("restart"), command("reload"),
			command("kill")))
	}
	return fmt.Sprintf(`biz: %d
name: %s
clouds: [{id: 0, name: default}]
sets: [{id: 5, name: %[2]s, env: 3, modules: [{id: 21, name: %[2]s, instances: [%s]}]}]
config_templates:
  - {id: 1, name: %[2]s, file_name: f, abs_path: /etc, owner: root, group: root, mode: "0644", bind: {processes: [41]}}
`, p.biz, p.mark, strings.Join(instances, ", "))
}

// admin sends a request that must succeed.
func (w *shared) admin(method, path string, body, out any) {
	w.t.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		text = encode(body)
	}
	code, got := w.call(w.t.Context(), w.s.Cred.AppCode, &request{method: method, path: path, body: text})
	if code >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, path, code, got)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(got), out); err != nil {
			w.t.Fatalf("%s %s: %v in %.500s", method, path, err, got)
		}
	}
}

// call sends a request as an app. An answer that has no end is read until the context ends.
func (w *shared) call(ctx context.Context, app string, r *request) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, r.method, w.s.Cred.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		w.t.Fatal(err)
	}
	secret := w.secrets[app]
	if app == w.s.Cred.AppCode {
		secret = w.s.Cred.Secret
	}
	req.Header.Set("X-Bkapi-Authorization",
		encode(object{"bk_app_code": app, "bk_app_secret": secret, "bk_username": app}))
	req.Header.Set("Content-Type", "application/json")
	if r.body != "" && r.body[0] != '{' {
		req.Header.Set("Content-Type", "application/yaml")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}

	res, err := w.client.Do(req)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			w.t.Errorf("%s: %v", r, err)
		}
		return 0, ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		w.t.Errorf("%s: %v", r, err)
	}
	return res.StatusCode, string(b)
}

var (
	taskMade = regexp.MustCompile(`"(?:task_id|bk_gse_taskid)":\s*"(GSETASK:\d+:\d+)"`)
	jobMade  = regexp.MustCompile(`"job_id":\s*(\d+)`)
)

// send sends a request of a tenant and gives the answer to the judge.
func (w *shared) send(p *party, door string, r *request) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if strings.Contains(r.path, "/stream") {
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	app := p.name
	if strings.HasSuffix(r.key, "boss") {
		app, r.key = p.name+"-boss", strings.TrimSuffix(r.key, "boss")
	}
	code, got := w.call(ctx, app, r)
	w.j.answer(p, r.String(), got)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	w.paths[r.method+" "+strings.SplitN(r.path, "?", 2)[0]] = true
	w.asked[door+" "+outcomeOf(code, got)]++
	for _, m := range taskMade.FindAllStringSubmatch(got, -1) {
		if w.madeBy[m[1]] == nil && r.method != http.MethodGet {
			w.madeBy[m[1]] = p
			w.tasks, w.open[m[1]] = append(w.tasks, m[1]), app
		}
	}
	for _, m := range jobMade.FindAllStringSubmatch(got, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && r.method != http.MethodGet && strings.Contains(got, `"result":true`) {
			w.jobs[n], w.lastJob = p, max(w.lastJob, n)
		}
	}
	return got
}

// outcomeOf is what became of a request, by its answer alone.
func outcomeOf(code int, got string) string {
	switch {
	case code == 0:
		return "unanswered"
	case code >= 500:
		return "failed"
	case code >= 300, refused.MatchString(got):
		return "refused"
	}
	return "accepted"
}

// settle waits until every task and job has ended.
func (w *shared) settle() {
	w.t.Helper()
	w.mu.Lock()
	open, jobs := w.open, w.jobs
	w.open, w.jobs = map[string]string{}, map[int]*party{}
	w.mu.Unlock()

	for id, app := range open {
		var got string
		ft.Until(w.t, 2*time.Minute, func() string { return "no verdict: " + got }, func() bool {
			_, got = w.call(w.t.Context(), app,
				&request{method: http.MethodGet, path: "/api/v1/tasks/" + id + "?wait=20s"})
			return strings.Contains(got, `"final":true`)
		})
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		var got string
		ft.Until(w.t, 2*time.Minute, func() string { return "the job does not end: " + got }, func() bool {
			_, got = w.call(w.t.Context(), w.s.Cred.AppCode, &request{method: http.MethodPost,
				path: kitDoor + "job/job_status/", body: encode(object{"bk_biz_id": jobs[id].biz, "job_id": id})})
			return !strings.Contains(got, `"status":"pending"`) && !strings.Contains(got, `"status":"running"`)
		})
	}
}
