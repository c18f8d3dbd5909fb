package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/fleettest"
)

// scenarios are the requests of the golden files, by the names of these.
func scenarios() map[string]func(*testing.T, *recorder) {
	return map[string]func(*testing.T, *recorder){
		"fleet": playFleet, "operations": playOperations, "topology": playTopology, "enrolment": playEnrolment,
		"releases": playReleases, "accounts": playAccounts, "logins": playLogins, "audit": playAudit,
		"server": playServer, "errors": playErrors, "keys": playKeys, "people": playPeople,
		"leave": playLeave, "config": playConfig, "sessions": playSessions, "live": playLive,
	}
}

func playFleet(_ *testing.T, r *recorder) {
	r.send("GET", "/api/v1/hosts", "")
	r.send("GET", "/api/v1/hosts?start=1&limit=1", "")
	r.send("GET", "/api/v1/hosts?start=9", "")
	r.send("GET", "/api/v1/processes", "")
	r.send("GET", "/api/v1/processes?limit=1", "")
	r.send("GET", "/api/v1/processes?host=10.9.9.9", "")
	r.send("GET", "/api/v1/definitions?limit=1", "")
	r.send("GET", "/api/v1/definitions?host=10.9.9.9", "")
	r.send("POST", "/api/v1/definitions/parse", `{"text":"name: web\nnice: high\n"}`)
	r.send("POST", "/api/v1/definitions/parse", `{"document":{"name":"web","hosts":[{"ip":"10.0.0.1"}],"command":"./web"}}`)
	r.send("GET", "/api/v1/events?limit=1", "")
	r.send("GET", "/api/v1/events", "")
	r.send("GET", "/api/v1/events?kind=health", "")
	r.send("GET", "/api/v1/events?kind=none", "")
	r.send("GET", "/api/v1/events/stream?since=1", "")
	r.send("PUT", "/api/v1/files", `{"hosts":[{"agent":"a1"},{"ip":"10.0.0.2"}],"path":"/etc/shop/web.conf","account":"shop","content":"a"}`)
	r.send("PUT", "/api/v1/files", `{"hosts":[{"agent":"a1"}],"path":"/etc/../x","account":"shop","kept":"x","content":"a"}`)
	r.send("GET", "/api/v1/files?namespace=shop&host=a1&path=/etc/shop/web.conf&account=shop", "")
	r.send("GET", "/api/v1/files?namespace=shop&host=a1&path=/etc/shop/web.conf&account=shop&kept="+strings.Repeat("0", 64), "")
	r.send("GET", "/api/v1/files?namespace=shop&path=etc&kept=1", "")
	r.send("GET", "/api/v1/files/versions?namespace=shop&host=a1&path=/etc/shop/web.conf&account=shop", "")
	r.send("GET", "/api/v1/discovery/prometheus", "")
	r.send("POST", "/api/v1/hosts/restart", `{"hosts":[{"agent":"a1"},{"ip":"10.0.0.2"}],"version":"1.2.3","remark":"why","confirm":2}`)
	r.send("POST", "/api/v1/hosts/restart", `{"hosts":[],"wait_seconds":4000,"force":1,"all":true}`)
	r.send("GET", "/api/v1/logs?namespace=shop&name=web&host=a1", "")
	r.send("GET", "/api/v1/history?namespace=shop&name=web&agent=a1&from=1700000000&to=1700000030&points=3", "")
	r.send("GET", "/api/v1/history?namespace=shop&name=web&agent=a1&host=a1&from=7&to=5&points=0", "")
}

func playConfig(_ *testing.T, r *recorder) {
	r.send("PUT", "/api/v1/topology/2", shop, yamlBody)
	template := `{"biz":2,"name":"web","file_name":"web.conf","folder":"/etc/shop/","owner":"shop","group":"shop","content":"listen ${8000 + LocalInstID}\n",
		"bind":{"processes":[46]}`
	r.send("PUT", "/api/v1/config/templates", template+`,"dry_run":true}`)
	r.send("PUT", "/api/v1/config/templates", template+`}`)
	r.send("PUT", "/api/v1/config/templates", template+`}`)
	r.send("PUT", "/api/v1/config/templates", `{"biz":2,"name":"a b","line_ends":"cr","content":"<% import os %>"}`)
	r.send("GET", "/api/v1/config/templates?biz=2", "")
	r.send("GET", "/api/v1/config/templates", "")
	r.send("GET", "/api/v1/config/templates/1?biz=2", "")
	r.send("GET", "/api/v1/config/templates/9?biz=2", "")
	r.send("POST", "/api/v1/config/render", `{"biz":2,"template":1,"process":46}`)
	r.send("POST", "/api/v1/config/render", `{"biz":2,"template":1,"process":46,"content":"${nope}"}`)
	r.send("POST", "/api/v1/config/jobs", `{"biz":2,"work":"generate","templates":[1],"expression":"*.*.*.*.*"}`)
	r.send("POST", "/api/v1/config/jobs", `{"biz":2,"work":"rollback","templates":[1],"version":9,"expression":"*.*.*.*.*"}`)
	r.send("POST", "/api/v1/config/jobs", `{"work":"rollback","force":true}`)
	r.send("POST", "/api/v1/config/jobs", `{"biz":2,"work":"release","templates":[1],"expression":"*.*.*.*.*","rollout":{"batch":1,"watch_seconds":5}}`)
	r.send("POST", "/api/v1/config/jobs", `{"biz":2,"work":"diff","expression":"*.*.*.*.*","rollout":{"batch":0,"watch_seconds":3601,"x":1}}`)
	r.send("POST", "/api/v1/config/jobs/1/stop", `{"biz":2}`)
	r.send("POST", "/api/v1/config/jobs/x/stop", `{"biz":2}`)
	r.send("GET", "/api/v1/config/jobs?biz=2", "")
	r.send("GET", "/api/v1/config/jobs/1?biz=2", "")
	r.send("GET", "/api/v1/config/jobs/9?biz=2", "")
	r.send("DELETE", "/api/v1/config/templates/1?biz=2", "")
	r.send("DELETE", "/api/v1/config/templates/1?biz=2", "")
}

func playOperations(_ *testing.T, r *recorder) {
	r.send("POST", "/api/v1/operations", `{"action":"start","namespace":"shop","names":["web"],"all":true}`)
	r.send("PUT", "/api/v1/processes", `{"namespace":"shop","name":"new","labels":{"a":"b"},"hosts":[{"agent":"a1"}],
		"spec":{"identity":{"proc_name":"new","setup_path":"/opt","pid_path":"/run/new.pid","user":"root"},
		"control":{"start_cmd":"./start"},"resource":{"cpu":10,"mem":10},"monitor_policy":{"auto_type":1}}}`)
	r.send("POST", "/api/v1/operations",
		`{"action":"stop","namespaces":["shop"],"names":["web"],"all":true,"dry_run":true}`)
	r.send("DELETE", "/api/v1/processes", `{"namespace":"shop","names":["web"],"hosts":[{"cloud":3,"ip":"10.0.0.9"}]}`)

	for _, query := range []string{"", "?show=failed", "?show=none", "?wait=1s"} {
		r.send("GET", "/api/v1/tasks/GSETASK:20240102030405:7"+query, "")
	}
	r.send("GET", "/api/v1/tasks/GSETASK:20240102030405:8", "")

	r.plane.list = record.TaskPage{Next: 7, Tasks: []record.TaskSummary{{Task: r.plane.results["20240102030405:7"].Task,
		Items:  []record.TaskItem{{Key: gozzard.Key{Namespace: "shop", Name: "web"}, Action: gozzard.ActionStart}},
		Counts: record.TaskCounts{Done: 3, Noted: 1, Failed: 1, Running: 1}}}}
	r.send("GET", "/api/v1/tasks?limit=1&name=web", "")
	r.send("GET", "/api/v1/tasks?state=lost", "")

	const retry = "/api/v1/tasks/GSETASK:20240102030405:7/retry"
	r.send("POST", retry, "{}")
	r.plane.failed = []gozzard.Item{{Action: gozzard.ActionStart, Key: gozzard.Key{Namespace: "shop", Name: "web"},
		Targets: []gozzard.Target{{Agent: "a2"}}}}
	r.send("POST", retry, `{"dry_run":true}`)
	r.send("POST", retry, `{"confirm":1}`)
	r.send("POST", "/api/v1/tasks/GSETASK:20240102030405:8/retry", "{}")
	r.send("POST", "/api/v1/tasks/GSETASK:20240102030405:7/cancel", "{}")
	r.send("POST", "/api/v1/tasks/GSETASK:20240102030405:8/cancel", `{"attempts":[]}`)
}

func playTopology(t *testing.T, r *recorder) {
	p := r.plane
	r.send("GET", "/api/v1/topology", "")
	r.send("PUT", "/api/v1/topology/2?dry_run=true", shop, yamlBody)
	r.send("PUT", "/api/v1/topology/2?version=0", shop, yamlBody)
	r.send("PUT", "/api/v1/topology/2", shop, yamlBody)
	p.Apply("a1", []gozzard.Status{
		{Key: topology.Key(2, "nginx", 1), State: gozzard.StateRunning, Wanted: gozzard.StateRunning, Hosted: true, PID: 5,
			ReportedAt: 9, RegisteredAt: 7, StartedAt: 8, CPU: 1.5, Mem: 2.5, FD: 3, Disk: 4, Net: 5, Version: "1.0",
			Message: "well", Labels: map[string]string{"a": "b"}},
		{Key: topology.Key(2, "nginx", 2), State: gozzard.StateStopped, Wanted: gozzard.StateStopped, PID: -1},
	}, nil)

	r.send("GET", "/api/v1/topology", "")
	r.send("GET", "/api/v1/topology/2", "")
	r.send("GET", "/api/v1/topology/2", "", header("Accept", "application/yaml"))
	r.send("GET", "/api/v1/topology/2/tree", "")
	r.send("GET", "/api/v1/topology/2/tree?env=test", "")
	r.send("GET", "/api/v1/processes?biz=2", "")
	r.send("GET", "/api/v1/processes?biz=2&limit=1", "")
	r.send("GET", "/api/v1/processes?biz=2&expression=*.web.*.*.*&state=running", "")
	r.send("POST", "/api/v1/operations", `{"action":"start","biz":2,"expression":"*.*.*.*.*"}`)

	changed := strings.Replace(shop, "id: 48,", "id: 48, priority: 7,", 1)
	changed = strings.Replace(changed, "proc_num: 2,", "", 1)
	p.Apply("a1", []gozzard.Status{{Key: topology.Key(2, "nginx", 2), State: gozzard.StateRunning, Hosted: true}}, nil)
	r.send("PUT", "/api/v1/topology/2?dry_run=true", changed, yamlBody)
	r.send("PUT", "/api/v1/topology/2", changed, yamlBody)
	r.send("PUT", "/api/v1/topology/2?prune=true", changed, yamlBody)

	r.send("DELETE", "/api/v1/topology/2?dry_run=true", "")
	r.send("DELETE", "/api/v1/topology/2", "")
	r.send("DELETE", "/api/v1/topology/2?version=9&prune=true", "")
	r.send("DELETE", "/api/v1/topology/2?prune=true", "")
	r.send("DELETE", "/api/v1/topology/2", "")
	r.send("DELETE", "/api/v1/topology/2", "", stranger)
	r.send("GET", "/api/v1/topology/2", "")
}

func playLeave(t *testing.T, r *recorder) {
	named := func(host string) func(*http.Request) {
		return func(req *http.Request) { asHost(t, "")(req); req.Host = host }
	}
	r.send("GET", "/join", "", stranger)
	r.send("GET", "/join", "", named("10.0.0.99:8443"))
	r.send("GET", "/join", "", named("x';reboot;'"))
	r.send("GET", "/api/v1/enrol/program/gozzard-linux-amd64", "", asHost(t, ""))
	r.send("GET", "/api/v1/enrol/program/gozzard-linux-arm64", "", asHost(t, ""))

	cert := r.text("certificate", "POST", "/api/v1/enrol", joinBody(t, r.text("token", "POST", "/api/v1/enrol/tokens",
		`{}`)), asHost(t, ""))
	r.send("POST", "/api/v1/enrol/leave", `{"machine":"another"}`, asHost(t, ""))
	r.send("POST", "/api/v1/enrol/leave", `{"machine":"machine"}`, asHost(t, cert))
	r.send("POST", "/api/v1/enrol/leave", `{"machine":"machine"}`, asHost(t, cert))
	r.send("GET", "/api/v1/enrol/agents", "")

	r.send("DELETE", "/api/v1/hosts/a1", "")
	r.send("DELETE", "/api/v1/hosts/nobody", "")
	r.send("DELETE", "/api/v1/hosts/a1", "", stranger)
	r.plane.SetOnline("a1", false, time.Unix(1, 0))
	r.send("DELETE", "/api/v1/hosts/a1", "")
	r.send("DELETE", "/api/v1/hosts/a1", "")
	r.send("GET", "/api/v1/hosts", "")
}

func playEnrolment(t *testing.T, r *recorder) {
	r.send("GET", "/api/v1/enrol/tokens", "")
	r.send("GET", "/api/v1/enrol/agents", "")
	token := r.text("token", "POST", "/api/v1/enrol/tokens",
		`{"ttl":"1h30m","uses":2,"cloud":3,"cidrs":["10.0.0.0/8"],"approve":true}`)

	r.send("POST", "/api/v1/enrol", joinBody(t, token), asHost(t, ""))
	r.send("GET", "/api/v1/enrol/tokens", "") // one token: several of the same time have no order
	r.send("GET", "/api/v1/enrol/agents", "")
	r.send("PUT", "/api/v1/enrol/agents/a9", `{"state":"active"}`)
	r.send("PUT", "/api/v1/enrol/agents/a9/addresses", `{"add":["10.0.0.77"]}`)
	r.send("PUT", "/api/v1/enrol/agents/a9/addresses", `{"remove":["10.0.0.77"]}`)
	cert := r.text("certificate", "POST", "/api/v1/enrol", joinBody(t, r.text("token", "POST", "/api/v1/enrol/tokens",
		`{"agent":"a9"}`)), asHost(t, ""))
	renewal := `{"machine":"machine","csr":"` + strings.ReplaceAll(newCSR(t), "\n", `\n`) + `"}`
	r.send("POST", "/api/v1/enrol/renew", renewal, asHost(t, cert))

	id := r.text("id", "POST", "/api/v1/enrol/tokens", `{}`)
	r.send("DELETE", "/api/v1/enrol/tokens/"+id, "")
	r.send("PUT", "/api/v1/enrol/agents/a9", `{"state":"revoked"}`)
}

// The release of the golden answers: one program with the content "x".
const (
	goldenDigest   = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	goldenManifest = `{"gozzard_release":1,"version":"1.2.3","created":"2126-01-01T00:00:00Z",` +
		`"expires":"2199-01-01T00:00:00Z","files":[` +
		`{"platform":"linux/amd64","name":"gozzard","size":1,"sha256":"` + goldenDigest + `"}]}`
)

func playReleases(t *testing.T, r *recorder) {
	r.send("GET", "/api/v1/releases", "")
	r.send("GET", "/api/v1/rolls", "")
	publish := `{"manifest":"` + base64.StdEncoding.EncodeToString([]byte(goldenManifest)) + `","signature":"` +
		base64.StdEncoding.EncodeToString(make([]byte, 64)) + `"}`
	r.send("POST", "/api/v1/releases", publish)
	r.send("PUT", "/api/v1/releases/1.2.3/files/"+goldenDigest, "x")
	r.send("GET", "/api/v1/releases", "")

	r.send("POST", "/api/v1/rolls", `{"version":"1.2.3","stages":[50,100]}`)
	r.send("GET", "/api/v1/rolls?limit=5", "")
	second := r.text("secret", "POST", "/api/v1/apps",
		`{"code":"second","asserts_users":true,"unknown_users":true,"grants":[{"role":"admin"}]}`)
	r.send("PUT", "/api/v1/rolls/1.2.3", `{"state":"approved"}`, app("second", second))
	r.send("PUT", "/api/v1/rolls/1.2.3", `{"state":"stopped"}`)

	token := r.text("token", "POST", "/api/v1/enrol/tokens", `{}`)
	cert := r.text("certificate", "POST", "/api/v1/enrol", joinBody(t, token), asHost(t, ""))
	r.send("GET", "/api/v1/enrol/releases/1.2.3/manifest", "", asHost(t, cert))
	r.send("GET", "/api/v1/enrol/releases/1.2.3/"+goldenDigest, "", asHost(t, cert))
	r.send("DELETE", "/api/v1/releases/1.2.3", "")
}

func playAccounts(_ *testing.T, r *recorder) {
	r.send("POST", "/api/v1/apps", `{"code":"shop","asserts_users":true,"signs":true,
		"grants":[{"role":"operator","businesses":[2],"clouds":[0,3],"nets":["10.0.0.0/8"],
		"actions":["start","stop"],"accounts":["shop"]},{"role":"viewer","namespaces":["shop*"],"hosts":"any"},{"role":"viewer"}]}`)
	r.send("GET", "/api/v1/apps", "")
	r.send("PUT", "/api/v1/apps/shop", `{"asserts_users":false,"missing_op_type_means_start":true}`)
	r.send("POST", "/api/v1/apps/shop/secrets", "")
	r.send("DELETE", "/api/v1/apps/shop/secrets", "")

	r.send("POST", "/api/v1/users", `{"name":"alice","password":"a long password","grants":[{"role":"viewer"}]}`)
	r.send("POST", "/api/v1/users", `{"name":"bob"}`)
	r.send("PUT", "/api/v1/users/bob", `{"disabled":true}`)
	r.send("GET", "/api/v1/users", "")
	r.send("GET", "/api/v1/users?start=1&limit=1", "")
	r.send("PUT", "/api/v1/users/alice/password", `{"password":"another password"}`)

	id := r.text("id", "POST", "/api/v1/users/alice/tokens", `{"days":1,"note":"laptop"}`)
	r.send("GET", "/api/v1/users/alice/tokens", "")
	r.send("DELETE", "/api/v1/users/alice/tokens/"+id, "")

	const grant = `{"user":"bob","grant":{"role":"operator","nets":["10.1.0.0/16"],"accounts":["*","root"]}}`
	r.send("POST", "/api/v1/grants", grant)
	r.send("GET", "/api/v1/grants", "")
	r.send("GET", "/api/v1/grants/check?user=bob&action=stop&host=10.1.2.3&account=root", "") // bob is disabled
	r.send("PUT", "/api/v1/users/bob", `{"disabled":false}`)
	r.send("GET", "/api/v1/grants/check?user=bob&action=stop&host=10.1.2.3&account=root", "")
	r.send("GET", "/api/v1/grants/check?app=shop&action=stop&host=10.9.0.5&namespace=JOB_BIZ_2", "")
	r.send("GET", "/api/v1/grants/check?app=shop&user=bob&action=start&host=10.1.2.3", "")
	r.send("GET", "/api/v1/grants/check?action=fly", "")
	r.send("DELETE", "/api/v1/grants", grant)
	r.send("DELETE", "/api/v1/users/bob", "")
	r.send("DELETE", "/api/v1/apps/shop", "")
	r.send("GET", "/api/v1/whoami", "")
}

func playLogins(t *testing.T, r *recorder) {
	r.send("POST", "/api/v1/users", `{"name":"a@example.com","password":"a long password","grants":[{"role":"viewer"}]}`)
	token := r.text("token", "POST", "/api/v1/login", `{"user":"a@example.com","password":"a long password"}`, stranger)
	bearer := func(req *http.Request) {
		stranger(req)
		person(token)(req)
	}
	r.send("GET", "/api/v1/whoami", "", bearer)
	r.send("POST", "/api/v1/logout", "", bearer)

	began := r.send("GET", "/login/oidc", "", stranger)
	cookie := began.Result().Cookies()[0]
	query := url.Values{"state": {r.provider.Visit(began.Header().Get("Location"))}, "code": {fleettest.ProviderCode}}
	r.send("GET", "/login/oidc/callback?"+query.Encode(), "", stranger, func(req *http.Request) { req.AddCookie(cookie) })
	r.send("GET", "/api/v1/users", "")
}

func playPeople(t *testing.T, r *recorder) {
	r.send("POST", "/api/v1/apps", `{"code":"portal","unknown_users":true}`)
	r.send("PUT", "/api/v1/apps/portal", `{"unknown_users":false,"disabled":true}`)
	r.send("GET", "/api/v1/apps", "")
	r.send("POST", "/api/v1/grants", `{"group":"/fleet/ops","grant":{"role":"viewer"}}`)
	r.send("GET", "/api/v1/grants", "")

	// A second factor.
	const alice = `"user":"alice","password":"a long password"`
	r.send("POST", "/api/v1/users", `{"name":"alice","password":"a long password","grants":[{"role":"admin"}]}`)
	session := r.text("token", "POST", "/api/v1/login", `{`+alice+`}`, stranger)
	r.send("POST", "/api/v1/enrol/tokens", `{}`, stranger, person(session)) // remains when she leaves
	secret := r.text("secret", "POST", "/api/v1/totp", `{`+alice+`}`, stranger)
	code, err := fleettest.TOTPCode(secret, goldenNow())
	check(t, err)
	r.send("PUT", "/api/v1/totp", `{`+alice+`,"code":"000"}`, stranger)
	if res := r.confirm(alice, code); res.Code != http.StatusOK {
		t.Fatalf("the factor is not confirmed: %d %s", res.Code, res.Body)
	}
	r.send("POST", "/api/v1/login", `{`+alice+`}`, stranger)
	r.send("GET", "/api/v1/users", "")
	r.send("DELETE", "/api/v1/users/alice/totp", `{}`)

	// A token for an app, and the end.
	r.send("POST", "/api/v1/users/alice/tokens", `{"days":1,"app":"portal"}`)
	r.send("POST", "/api/v1/users/alice/offboard", "")
	r.send("DELETE", "/api/v1/users/alice", "")
	r.send("POST", "/api/v1/users", `{"name":"alice"}`)
	r.send("POST", "/api/v1/users", `{"name":"alice","reuse_name":true}`)
}

// confirm confirms a second factor.
func (r *recorder) confirm(user, code string) *httptest.ResponseRecorder {
	return r.send("PUT", "/api/v1/totp", `{`+user+`,"code":"`+code+`"}`, stranger)
}

func playAudit(t *testing.T, r *recorder) {
	r.send("GET", "/api/v1/audit", "")
	r.send("GET", "/api/v1/audit?after=1&limit=1", "")
	r.send("GET", "/api/v1/audit?after=2", "")
	r.send("GET", "/api/v1/audit?user=me&action=start", "")
	r.send("GET", "/api/v1/audit/verify", "")
	r.send("GET", "/api/v1/audit/verify?after=1", "")
	r.send("GET", "/api/v1/server", "")
	r.send("GET", "/api/v1/servers", "")
	r.send("PUT", "/api/v1/servers/s1", `{"drained":true}`)
	r.send("PUT", "/api/v1/servers/s2", `{"drained":false}`)
	r.send("PUT", "/api/v1/servers/s3", `{"drained":true}`)
	r.send("PUT", "/api/v1/servers/s1", `{}`)
	r.send("POST", "/api/v1/servers/token", `{"ttl":"2h"}`)
	join := serverJoinBody(t, r.text("token", "POST", "/api/v1/servers/token", `{"ttl":"10m"}`))
	r.send("POST", "/api/v1/servers/join", join, stranger)
	r.send("POST", "/api/v1/servers/join", join, asHost(t, ""))
	r.send("POST", "/api/v1/servers/join", join, asHost(t, ""))
	playRelays(t, r)
	playAlerts(t, r)
	r.send("GET", "/api/v1/audit/1", "")
	r.send("GET", "/api/v1/audit/3", "")
	r.send("GET", "/api/v1/audit/definitions/03"+strings.Repeat("0", 62), "")
}

func playRelays(t *testing.T, r *recorder) {
	r.send("GET", "/api/v1/relays", "")
	r.send("POST", "/api/v1/relays/token", `{"name":"plant","areas":[0]}`)
	join := relayJoinBody(t, r.text("token", "POST", "/api/v1/relays/token", `{"name":"plant","areas":[4,3],"ttl":"10m"}`))
	r.send("POST", "/api/v1/relays/join", join, stranger)
	id := r.text("id", "POST", "/api/v1/relays/join", join, asHost(t, ""))
	r.send("POST", "/api/v1/relays/join", join, asHost(t, ""))
	r.send("GET", "/api/v1/relays", "")
	r.send("DELETE", "/api/v1/relays/"+id, "")
	r.send("DELETE", "/api/v1/relays/"+id, "")
}

func playAlerts(t *testing.T, r *recorder) {
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hook.Close)
	works := r.text("id", "POST", "/api/v1/receivers", `{"name":"works","kind":"webhook","url":"`+hook.URL+`"}`)
	r.send("POST", "/api/v1/receivers/"+works+"/test", `{}`)
	r.send("DELETE", "/api/v1/receivers/"+works, "")
	r.send("POST", "/api/v1/receivers", `{"name":"near","kind":"webhook","url":"http://169.254.169.254/"}`)
	id := r.text("id", "POST", "/api/v1/receivers",
		`{"name":"pager","kind":"webhook","url":"http://127.0.0.1:1/hook?key=hidden","secret":"0123456789abcdef","shared":true}`)
	r.send("POST", "/api/v1/receivers/"+id+"/test", `{}`)
	r.send("GET", "/api/v1/receivers", "")
	r.send("PUT", "/api/v1/receivers/"+id, `{"language":"zh"}`)
	r.send("PUT", "/api/v1/receivers/"+id, `{"url":"http://127.0.0.1:2/hook"}`)
	r.send("PUT", "/api/v1/receivers/"+id, `{}`)
	r.send("PUT", "/api/v1/receivers/nothing", `{"language":"zh"}`)
	sub := r.text("id", "POST", "/api/v1/subscriptions", `{"name":"night","receivers":["pager"],"kinds":["host_lost"],"wait":"10s"}`)
	r.send("POST", "/api/v1/subscriptions", `{"name":"night","receivers":["unknown"]}`)
	r.send("GET", "/api/v1/subscriptions", "")
	r.send("POST", "/api/v1/subscriptions", `{"name":"day","receivers":["pager"]}`)
	r.send("PUT", "/api/v1/subscriptions/"+sub, `{"name":"day"}`)
	r.send("PUT", "/api/v1/subscriptions/day", `{"name":"noon","kinds":[],"wait":"","businesses":[2],"labels":{"tier":"front"}}`)
	r.send("PUT", "/api/v1/subscriptions/noon", `{}`)
	r.send("PUT", "/api/v1/subscriptions/nothing", `{"repeat":"1h"}`)
	r.send("DELETE", "/api/v1/subscriptions/noon", "")
	r.send("DELETE", "/api/v1/receivers/"+id, "")
	r.send("DELETE", "/api/v1/subscriptions/"+sub, "")
	r.send("DELETE", "/api/v1/receivers/"+id, "")
	r.send("GET", "/api/v1/dead-letters", "")
	r.send("POST", "/api/v1/dead-letters/1/retry", `{}`)
	r.send("POST", "/api/v1/dead-letters/1/retry", `{}`)
	r.send("DELETE", "/api/v1/dead-letters/2", "")
	r.send("DELETE", "/api/v1/dead-letters/2", "")
}

func playServer(_ *testing.T, r *recorder) {
	r.send("GET", "/healthz", "", stranger)
	r.send("GET", "/readyz", "", stranger)
	r.send("GET", "/api/v1/openapi.json", "", stranger)
	r.send("GET", "/api/v1/definition.schema.json", "", stranger)
	r.send("GET", "/metrics", "")
	r.send("GET", "/api/v1/restore", "")
	r.send("POST", "/api/v1/restore/confirm", `{"confirm":2}`)
	r.send("GET", "/api/v1/restore", "")
	r.send("GET", "/api/v1/hosts?limit=1", "")
}

func playErrors(_ *testing.T, r *recorder) {
	r.send("GET", "/api/v1/hosts", "", stranger)
	r.send("GET", "/api/v1/nothing", "")
	r.send("PATCH", "/api/v1/hosts", "")
	r.send("GET", "/api/v1/hosts?limit=0&strat=1", "")
	r.send("POST", "/api/v1/operations", `{"action":"strat","names":[]}`)
	r.send("GET", "/api/v1/tasks/unknown", "")
	r.send("POST", "/api/v1/apps", `{"code":"admin"}`)
	r.send("POST", "/api/v1/enrol", `{}`, stranger)
}

// playLive reads the live data.
func playLive(t *testing.T, r *recorder) {
	t.Helper()
	table, err := client.ParseLiveSnapshot(r.send("GET", "/api/v1/live/snapshot", "").Body.Bytes())
	check(t, err)
	r.send("GET", fmt.Sprintf("/api/v1/live/stream?after=%d&epoch=%s", table.Seq, table.Epoch), "")
	r.send("GET", "/api/v1/live/stream?after=7&epoch=other", "")
	r.send("POST", "/api/v1/live/rows", fmt.Sprintf(`{"epoch":%q,"ids":[0,1,99]}`, table.Epoch))
	r.send("POST", "/api/v1/live/rows", `{"epoch":"other","ids":[0]}`)
	r.send("GET", "/api/v1/live/match?expression=*.*.*.*.*&epoch="+table.Epoch, "")
	r.send("GET", "/api/v1/live/match?expression=*.*.*.*.*&biz=2&epoch=other", "")
	r.send("GET", "/api/v1/live/match?expression=*.[&biz=x&epoch="+table.Epoch, "")
}
