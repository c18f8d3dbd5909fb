package tenants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/server"
)

// request is one call that any caller can send to any world.
type request struct {
	method, path string
	body         string
	key          string // idempotency key
}

func (r *request) String() string { return strings.TrimSpace(r.method + " " + r.path + " " + r.body) }

// send sends a request as an app. It returns the status and the answer without the parts that differ each time.
func (w *world) send(app string, r *request) (int, string) {
	return w.sendAs(fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":"u"}`, app, app+"-secret"), r)
}

func (w *world) sendAs(credentials string, r *request) (int, string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()

	if strings.Contains(r.path, "/stream") {
		ctx, cancel = context.WithTimeout(ctx, 5*time.Millisecond)
		defer cancel()
	}

	var body io.Reader = http.NoBody
	if r.body != "" {
		body = strings.NewReader(w.names.put(r.body))
	}

	req := httptest.NewRequestWithContext(ctx, r.method, w.names.put(r.path), body)
	req.RemoteAddr = "192.0.2.7:4711"

	if strings.HasPrefix(credentials, "Bearer ") {
		req.Header.Set("Authorization", credentials)
	} else if credentials != "" {
		req.Header.Set("X-Bkapi-Authorization", credentials)
	}

	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}

	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, req)
	w.settle()
	text := w.names.take(rec.Body.String(), w.tasks()[w.listed:])
	return rec.Code, volatile.ReplaceAllString(text, `$1`)
}

// volatile matches ids of requests, numbers of events (they count for the whole fleet), durations, and the random number of a
// run of the server.
var volatile = regexp.MustCompile(`("request_id"|"next"|"cost_time"|"epoch"|"timestamp")\s*:\s*("[^"]*"|[\d.]+)|(?:"id":\d+,"(?:agent|host)")|(?m:^(?:id: \d+|:.*)$)`)

// maker makes random requests for all doors: about what a tenant has, what another tenant has, and what does not exist.
type maker struct {
	*rand.Rand
	words
	app    string // that sends the next request
	routes []route
	tasks  int // number of tasks made
	jobs   int
}

// words are what requests can name. Each call returns a random one.
type words interface {
	agent() string
	ip() string
	network() string // the beginning of an address
	namespace() string
	name() string
	biz() int
	task() string
	job() int
	person() string // an app or a user
	account() string
	definition() string // the digest of one
	spec() object
	info() object     // a process as requests to the Job door describe it
	topology() string // a document
}

// playedWords are those of the fleet whose agents the test plays.
type playedWords struct{ *maker }

type route struct {
	method, path, door string
	open               bool // needs no credentials
}

func newMaker(w *world, seed uint64) *maker {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 5))}
	m.words = playedWords{m}
	m.routes = allRoutes(w.t)
	return m
}

// allRoutes lists the routes of all doors.
func allRoutes(t testing.TB) (routes []route) {
	t.Helper()
	all, err := server.Routes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		routes = append(routes, route{r.Method, r.Path, r.Door, r.Open})
	}
	return routes
}

type object = map[string]any

func pick[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

func (m playedWords) agent() string {
	return pick(m.maker, "host-a1", "host-a2", "host-s1", "host-b1", "host-b2", "host-n1", "host-none")
}

func (m playedWords) ip() string {
	return pick(m.maker, "10.1.0.1", "10.1.0.2", "10.3.0.1", "10.2.0.1", "10.2.0.2", "10.9.0.1", "10.1.0.77", "10.2.0.77")
}

func (m playedWords) namespace() string {
	return pick(m.maker, "alpha-1", "alpha-2", "alpha-9", "beta-1", "beta-2", "common", "GSEKIT_BIZ_2", "GSEKIT_BIZ_3",
		"JOB_BIZ_2", "JOB_BIZ_3", "other")
}

func (m playedWords) name() string { return pick(m.maker, "web", "db", "java_1", "x", "new") }

func (m playedWords) biz() int { return pick(m.maker, 2, 2, 3, 9) }

func (m playedWords) task() string {
	if m.tasks == 0 || m.IntN(8) == 0 {
		return "GSETASK:20260701020304:999999"
	}
	return fmt.Sprintf("task-%d", m.IntN(m.tasks))
}

func (m playedWords) job() int { return 1 + m.IntN(m.jobs+2) }

func (m playedWords) network() string { return pick(m.maker, "10.1", "10.2", "10.3", "default") }

func (m playedWords) person() string { return pick(m.maker, "A", "B", "admin", "u", "nobody") }

func (m playedWords) definition() string { return releasedDigest }

func (m playedWords) topology() string {
	return strings.ReplaceAll(document(m.biz(), "10.1.0.1", "10.3.0.1", "", "A", false), tag("A"), "mine")
}

func (m playedWords) info() object {
	return object{"setup_path": "/data", "proc_name": pick(m.maker, "x", "y"), "pid_path": "/run/x.pid",
		"account": m.account(), "start_cmd": "./s", "stop_cmd": "./t",
		"restart_cmd": "./r", "reload_cmd": "./l", "kill_cmd": "./k", "type": 1}
}

func (m *maker) some(f func() any) []any {
	list := make([]any, 1+m.IntN(3))
	for i := range list {
		list[i] = f()
	}
	return list
}

func (m *maker) next() *request {
	door := pick(m, "api", "gse", "gse", "job", "gsekit", "gsekit")
	var of []route
	for _, r := range m.routes {
		if r.door == door {
			of = append(of, r)
		}
	}
	return m.to(pick(m, of...))
}

// to makes a request to one route.
func (m *maker) to(rt route) *request {
	r := &request{method: rt.method, path: m.fill(rt.path)}

	if m.IntN(6) == 0 {
		r.key = fmt.Sprint("key-", m.IntN(20))
	}

	var body object
	switch rt.door {
	case "gse":
		body = m.gse()
	case "job":
		body = m.manage()
	case "gsekit":
		body = m.kit()
	default:
		m.native(rt, r)
		return r
	}

	if rt.method == http.MethodGet {
		r.path += "?" + query(body)
		return r
	}

	r.body = encode(body)
	return r
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func query(body object) string {
	q := url.Values{}
	for name, v := range body {
		if s, ok := v.(string); ok {
			q.Set(name, s)
		} else {
			q.Set(name, encode(v))
		}
	}
	return q.Encode()
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// fill replaces the placeholders of a path by values.
func (m *maker) fill(path string) string {
	first := true
	return parameter.ReplaceAllStringFunc(path, func(p string) string {
		// GSEKit has the business in the body.
		biz := p == "{biz}" || p == "{}" && first && !strings.Contains(path, "/gsekit/")
		first = false

		switch {
		case biz:
			return fmt.Sprint(m.biz())
		case p == "{}":
			return fmt.Sprint(m.job())
		case p == "{id}":
			return m.task()
		case p == "{agent}":
			return m.agent()
		case p == "{row}":
			return fmt.Sprint(1 + m.IntN(300))
		case p == "{digest}":
			return m.definition()
		case p == "{version}":
			return released
		case p == "{file}":
			return pick(m, "manifest", "signature", releasedDigest)
		}

		return m.person()
	})
}

func (m playedWords) spec() object {
	return object{
		"identity": object{"proc_name": "p", "setup_path": "/data", "pid_path": "/run/p.pid", "user": m.account()},
		"control": object{"start_cmd": "./mine", "stop_cmd": "./stop", "reload_cmd": "./r", "restart_cmd": "./rs",
			"kill_cmd": "./k"},
		"resource": object{"cpu": 10, "mem": 10}, "monitor_policy": object{"auto_type": 1},
		"process_group": []any{object{"id": "g", "resource": object{"cpu_pool_limit": 10, "mem_pool_limit": 10,
			"cpu_pool_weight": 0, "mem_pool_weight": 1}}},
	}
}

// account is mostly that of the caller, else one of another tenant, root, or root in another spelling.
func (m playedWords) account() string {
	if m.IntN(3) > 0 {
		return accountOf(m.app)
	}
	return pick(m.maker, "anna", "anna", "bert", "bert", "root", "0", "Root", "")
}

func (m *maker) host() any {
	return object{"ip": m.ip(), "bk_cloud_id": 0, "bk_supplier_id": 0, "bk_agent_id": m.agent()}
}

// gse has the fields of all GSE calls. Each call reads its own.
func (m *maker) gse() object {
	one := func() object {
		o := object{"meta": object{"namespace": m.namespace(), "name": m.name(), "labels": object{"proc_name": "p"}},
			"op_type": pick(m, 0, 1, 2, 3, 4, 7, 8, 9), "spec": m.spec()}
		if m.IntN(2) == 0 {
			o["hosts"] = m.some(m.host)
		} else {
			o["agent_id_list"] = m.some(func() any { return m.agent() })
		}
		return o
	}

	body := one()
	body["hosts"] = m.some(m.host)
	body["task_id"] = m.task()
	body["type"] = 1 // of operate_agent
	body["page"] = object{"start": m.IntN(3), "limit": 1 + m.IntN(5)}
	body["proc_operate_req"] = m.some(func() any { return one() })

	if m.IntN(3) > 0 {
		delete(body, "agent_id_list")
	}

	return body
}

// manage is a request to the Job door.
func (m *maker) manage() object {
	return object{
		"bk_biz_id": m.biz(), "bk_gse_taskid": m.task(), "op_type": pick(m, 0, 1, 2, 3, 4, 7, 8, 9),
		"process_infos": m.some(func() any {
			info := m.info()
			info["ip_list"] = m.some(func() any { return object{"ip": m.ip(), "bk_cloud_id": 0} })
			return info
		}),
	}
}

// kit is a request to the GSEKit door.
func (m *maker) kit() object {
	body := object{
		"bk_biz_id": m.biz(), "job_id": m.job(), "page": 1 + m.IntN(2), "pagesize": 1 + m.IntN(4),
		"job_object": "process",
		"job_action": pick(m, "start", "stop", "restart", "set_auto", "unset_auto"),
		"op_type":    pick(m, "start", "stop", "reload", "force_stop"),
		"expression": "*", "candidates": []any{"a", "b"},
	}
	switch m.IntN(4) {
	case 0:
		body["expression_scope"] = object{"bk_set_env": "3", "bk_set_name": "*", "bk_module_name": "*",
			"service_instance_name": pick(m, "*", "*[1:3]"),
			"bk_process_name":       "*", "bk_process_id": pick(m, "*", "41", "[42-44]")}
	case 1:
		body["scope"] = object{"bk_set_env": "3", "bk_process_ids": []any{pick(m, 41, 42, 43, 44)}}
	case 2:
		body["scope"] = object{"bk_set_env": "3", "bk_service_ids": []any{pick(m, 1, 2, 3, 4)}}
	default:
		body["scope"] = object{"bk_set_env": "3"}
	}

	if m.IntN(3) == 0 {
		body["searches"] = []any{m.network()}
	}

	return body
}

// native is a request to our own API.
func (m *maker) native(rt route, r *request) {
	hosts := func() any {
		if m.IntN(2) == 0 {
			return object{"agent": m.agent()}
		}
		return object{"ip": m.ip()}
	}

	scope := object{"biz": m.biz(), "expression": pick(m, "*.*.*.*.*", "*.*.*.java.[41-43]")}
	body := object{"action": pick(m, "start", "stop", "restart", "reload", "kill", "query", "host", "unhost"),
		"namespace": pick(m, m.namespace(), "*", "beta-*", "a*"),
		"names":     []any{pick(m, m.name(), "*")}}

	if m.IntN(3) == 0 {
		body["all"] = true
	} else {
		body["hosts"] = m.some(hosts)
	}

	switch {
	case strings.HasSuffix(rt.path, "/operations") && m.IntN(3) == 0:
		scope["action"] = body["action"]
		body = scope
	case strings.HasSuffix(rt.path, "/operations") && m.IntN(2) == 0: // with a definition, of one process
		spec := m.spec()
		delete(spec, "process_group")
		body = object{"action": body["action"], "namespace": m.namespace(), "names": []any{m.name()},
			"hosts": m.some(hosts), "spec": spec}
	case rt.method == http.MethodDelete && strings.HasSuffix(rt.path, "/processes"):
		delete(body, "action")
	case rt.method == http.MethodPut && strings.HasSuffix(rt.path, "/processes"):
		spec := m.spec()
		delete(spec, "process_group")
		body = object{"namespace": m.namespace(), "name": m.name(), "hosts": m.some(hosts), "spec": spec}
	case rt.path == "/api/v1/files":
		body = object{"namespace": m.namespace(), "hosts": m.some(hosts), "path": "/data/x.conf", "account": "root",
			"content": "x"}
	case rt.path == "/api/v1/hosts/restart":
		body = object{"hosts": m.some(hosts), "force": m.IntN(2) == 0}
	case rt.path == "/api/v1/config/templates":
		body = object{"biz": m.biz(), "name": fmt.Sprintf("t%d", m.IntN(1000)), "file_name": "x.conf", "folder": "/data", "owner": "root",
			"group": "root", "content": "x"}
	case rt.path == "/api/v1/config/render":
		body = object{"biz": m.biz(), "template": 1 + m.IntN(3), "process": pick(m, 41, 42, 43, 44)}
	case rt.path == "/api/v1/config/jobs":
		body = object{"work": pick(m, "generate", "release", "diff")}
		maps.Copy(body, scope)
	case strings.HasSuffix(rt.path, "/stop"):
		body = object{"biz": m.biz()}
	case strings.HasSuffix(rt.path, "/cancel"):
		body = object{}
	case strings.HasSuffix(rt.path, "/retry"):
		body = object{"dry_run": m.IntN(3) == 0}
	case strings.HasPrefix(rt.path, "/api/v1/topology/"):
		r.body = m.topology()
	case strings.HasPrefix(rt.path, "/api/v1/rolls/"):
		body = object{"state": pick(m, "approved", "stopped")}
	case strings.HasPrefix(rt.path, "/api/v1/rolls"):
		body = object{"version": released, "stages": []any{100}}
	case strings.HasPrefix(rt.path, "/api/v1/grants"), strings.HasPrefix(rt.path, "/api/v1/apps"),
		strings.HasPrefix(rt.path, "/api/v1/users"):
		body = object{"app": "A", "user": "u", "code": "A", "name": "u", "password": "0123456789abcdef",
			"role": "admin", "grants": []any{object{"role": "admin"}}}
	}

	if rt.method != http.MethodGet {
		if r.body == "" {
			r.body = encode(body)
		}
		return
	}

	q := url.Values{}
	switch {
	case strings.HasSuffix(rt.path, "/processes"):
		if m.IntN(2) == 0 {
			q.Set("biz", fmt.Sprint(scope["biz"]))
			break
		}
		q.Set("limit", fmt.Sprint(1+m.IntN(10)))
		m.maybe(q, "namespace", pick(m, m.namespace(), "*", "*-1"))
		m.maybe(q, "name", pick(m, m.name(), "*"))
		m.maybe(q, "host", pick(m, m.agent(), m.ip()))
		m.maybe(q, "cloud", "0")
		m.maybe(q, "start", fmt.Sprint(m.IntN(4)))
	case strings.HasSuffix(rt.path, "/tasks"):
		m.maybe(q, "namespace", pick(m, m.namespace(), "*", "*-1"))
		m.maybe(q, "name", pick(m, m.name(), "*"))
		m.maybe(q, "host", pick(m, m.agent(), m.ip(), "0:"+m.ip()))
		m.maybe(q, "user", m.person())
		m.maybe(q, "app", m.person())
		m.maybe(q, "action", pick(m, "start", "stop", "query"))
		m.maybe(q, "state", pick(m, "running", "failed", "done"))
		m.maybe(q, "before", m.task())
		m.maybe(q, "mine", "true")
		m.maybe(q, "limit", fmt.Sprint(1+m.IntN(5)))
	case strings.Contains(rt.path, "/events"):
		m.maybe(q, "namespace", pick(m, m.namespace(), "*"))
		m.maybe(q, "host", pick(m, m.agent(), m.ip()))
	case strings.HasSuffix(rt.path, "/logs"):
		q.Set("namespace", m.namespace())
		q.Set("name", m.name())
		q.Set("host", pick(m, m.agent(), m.ip(), "0:"+m.ip()))
	case strings.HasPrefix(rt.path, "/api/v1/config/"):
		q.Set("biz", fmt.Sprint(m.biz()))
	case strings.HasPrefix(rt.path, "/api/v1/files"):
		q.Set("namespace", m.namespace())
		q.Set("host", pick(m, m.agent(), m.ip(), "0:"+m.ip()))
		q.Set("path", "/data/x.conf")
		q.Set("account", m.account())
	case strings.HasSuffix(rt.path, "/grants/check"):
		q.Set("app", m.person())
		q.Set("action", pick(m, "start", "stop"))
		q.Set("host", pick(m, m.agent(), m.ip()))
		m.maybe(q, "namespace", m.namespace())
		m.maybe(q, "account", m.account())
	case strings.HasSuffix(rt.path, "/audit"):
		m.maybe(q, "host", pick(m, m.agent(), m.ip()))
		m.maybe(q, "account", m.account())
		m.maybe(q, "app", m.person())
		m.maybe(q, "newest", "true")
	case strings.HasSuffix(rt.path, "/hosts"):
		m.maybe(q, "limit", fmt.Sprint(1+m.IntN(3)))
	}

	r.path += "?" + q.Encode()
}

func (m *maker) maybe(q url.Values, name, value string) {
	if m.IntN(3) == 0 {
		q.Set(name, value)
	}
}
