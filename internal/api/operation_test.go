package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
)

// targetsOf lists the targets of an operation as "action namespace:name @ host".
func targetsOf(op *gozzard.Operation) []string {
	var list []string
	for _, it := range op.Items {
		for _, t := range it.Targets {
			host := string(t.Agent)
			if host == "" {
				host = t.Addr.String()
			}
			list = append(list, fmt.Sprintf("%s %s @ %s", it.Action, it.Key, host))
		}
	}
	slices.Sort(list)
	return list
}

func TestOperations(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"written out": {`{"action":"start","namespace":"shop","names":["web","new"],"hosts":[{"cloud":0,"ip":"10.0.0.1"},{"agent":"a2"},{"cloud":9,"ip":"10.9.9.9"}]}`,
			[]string{"start shop:new @ 0:10.0.0.1", "start shop:new @ 9:10.9.9.9", "start shop:new @ a2",
				"start shop:web @ 0:10.0.0.1", "start shop:web @ 9:10.9.9.9", "start shop:web @ a2"}},
		"same host twice":    {`{"action":"stop","namespace":"shop","names":["web","web"],"hosts":[{"cloud":0,"ip":"10.0.0.1"},{"cloud":0,"ip":"10.0.0.1"}]}`, []string{"stop shop:web @ 0:10.0.0.1"}},
		"cloud found":        {`{"action":"kill","namespace":"shop","names":["web"],"hosts":[{"ip":"10.0.0.9"}]}`, []string{"kill shop:web @ 3:10.0.0.9"}},
		"address of no host": {`{"action":"kill","namespace":"shop","names":["web"],"hosts":[{"ip":"10.7.7.7"}]}`, []string{"kill shop:web @ 0:10.7.7.7"}},
		"v4 in v6":           {`{"action":"kill","namespace":"shop","names":["web"],"hosts":[{"cloud":0,"ip":"::ffff:10.0.0.1"}]}`, []string{"kill shop:web @ 0:10.0.0.1"}},
		"everywhere": {`{"action":"restart","namespace":"shop","names":["web"],"all":true}`,
			[]string{"restart shop:web @ a1", "restart shop:web @ a2", "restart shop:web @ a3"}},
		"pattern": {`{"action":"reload","names":["w*"],"hosts":[{"agent":"a1"}]}`,
			[]string{"reload shop:web @ a1", "reload shop:worker @ a1"}},
		"pattern of another script": {`{"action":"host","namespace":"游?","names":["*关*"],"hosts":[{"cloud":0,"ip":"10.0.0.2"}]}`, []string{"manage 游戏:网关服 @ a2"}},
		"any namespace, literal names": {`{"action":"unhost","names":["web"],"hosts":[{"agent":"a3"}]}`,
			[]string{"unmanage shop:web @ a3"}},
		"processes with their hosts": {`{"action":"stop","processes":[{"namespace":"shop","name":"web","agents":["a1","a3"]},{"namespace":"游戏","name":"网关服","agents":["a2"]}]}`,
			[]string{"stop shop:web @ a1", "stop shop:web @ a3", "stop 游戏:网关服 @ a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			r := s.call("POST", "/api/v1/operations", c.body)
			if r.code != 202 {
				t.Fatalf("answers %d %s", r.code, r.body)
			}
			if diff := cmp.Diff(c.want, targetsOf(s.last(t))); diff != "" {
				t.Errorf("targets differ (-want +got):\n%s", diff)
			}

			var a struct {
				TaskID  string `json:"task_id"`
				Targets int    `json:"targets"`
			}
			r.decode(t, &a)

			if a.TaskID != "GSETASK:20240102030405:7" || a.Targets != len(c.want) ||
				r.header.Get("Location") != "/api/v1/tasks/"+a.TaskID {
				t.Errorf("answer is %+v, location %s", a, r.header.Get("Location"))
			}

			op := s.last(t)
			want := gozzard.Caller{App: "app", User: "me", Asserted: true, Rights: op.Caller.Rights}
			if op.Caller != want || !want.Rights.All() || op.Door != "api" || op.WaitOffline != 0 || !op.Adopt {
				t.Errorf("operation is %+v", op)
			}
		})
	}
}

func TestOperationWithDefinition(t *testing.T) {
	s := newServer(t)
	const spec = `"spec":{"identity":{"proc_name":"java","setup_path":"/opt/shop","pid_path":"/run/web.pid","user":"www"},
		"control":{"start_cmd":"./start.sh 网关","stop_cmd":"./stop.sh"},"resource":{"cpu":12.5,"mem":3},
		"monitor_policy":{"auto_type":2,"start_check_secs":0,"op_timeout":null},"warn_report_policy":{"report_id":9},"configmap":[{"path":"/etc/x","md5":"aa"}]}`
	r := s.call("PUT", "/api/v1/processes",
		`{"namespace":"shop","name":"web","labels":{"tier":"front","biz":3},"hosts":[{"agent":"a1"}],"when_offline":"wait","wait_seconds":90,`+spec+`}`)
	if r.code != 202 {
		t.Fatalf("answers %d %s", r.code, r.body)
	}

	op := s.last(t)
	want := &gozzard.Spec{
		Identity: gozzard.Identity{ProcName: "java", SetupPath: "/opt/shop", PIDPath: "/run/web.pid", User: "www"},
		Control:  gozzard.Control{Start: "./start.sh 网关", Stop: "./stop.sh"},
		Resource: gozzard.Resource{CPU: 12.5, Mem: 3},
		Policy: gozzard.Policy{Kind: gozzard.KindOneShot, StartCheckSecs: 0, StopCheckSecs: 5, StartRetries: 4,
			StartInterval: 10, OpTimeout: 60},
		ReportID: 9, ConfigMap: []gozzard.ConfigCheck{{Path: "/etc/x", MD5: "aa"}},
	}
	if diff := cmp.Diff(want, op.Items[0].Spec); diff != "" {
		t.Errorf("definition differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"tier": "front", "biz": "3"}, op.Items[0].Labels); diff != "" {
		t.Errorf("labels differ:\n%s", diff)
	}
	if op.Items[0].Action != gozzard.ActionUpdate || op.WaitOffline != 90*time.Second {
		t.Errorf("operation is %+v", op)
	}
	if r := s.call("DELETE", "/api/v1/processes", `{"namespace":"shop","names":["web"],"all":true}`); r.code != 202 ||
		targetsOf(s.last(t))[0] != "unregister shop:web @ a1" {
		t.Errorf("delete answers %d %s", r.code, r.body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := newServer(t)
	const body = `{"namespace":"shop","names":["web"],"all":true}`
	s.call("DELETE", "/api/v1/processes", body, header("Idempotency-Key", "k1"))
	first := s.last(t)
	s.call("DELETE", "/api/v1/processes", body+" ", header("Idempotency-Key", "k1"))
	if second := s.last(t); first.IdempotencyKey != "k1" || first.RequestHash == second.RequestHash {
		t.Error("another body has the same hash")
	}
	if r := s.call("DELETE", "/api/v1/processes", body, header("Idempotency-Key", "täst")); r.code != 400 {
		t.Errorf("a key that is not ASCII answers %d", r.code)
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	host := `"hosts":[{"cloud":0,"ip":"10.0.0.1"}]`
	ok := `"action":"start","namespace":"shop","names":["web"],` + host
	for name, c := range map[string]struct{ body, want string }{
		"empty":          {``, "body is empty"},
		"null":           {`null`, "must be a JSON object"},
		"list":           {`[]`, "must be a JSON object"},
		"two documents":  {`{` + ok + `} {}`, "after the end of the document"},
		"trailing comma": {`{` + ok + `,}`, "line 1"},
		"duplicate":      {`{"action":"stop",` + ok + `}`, "action"},
		"too deep":       {`{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "deep"},
		"too long":       {`{"x":"` + strings.Repeat("x", 5<<20) + `"}`, "4 MiB"},
		"misspelt key": {`{"acton":"start","names":["web"],` + host + `}`,
			`acton: unknown, did you mean "action"?`},
		"wrong case": {`{"Action":"start","names":["web"],` + host + `}`,
			`Action: unknown, did you mean "action"?`},
		"strange key":           {`{` + ok + `,"completely_else":1}`, "completely_else: unknown, known are action"},
		"no action":             {`{"names":["web"],` + host + `}`, "action: required"},
		"null action":           {`{"action":null,"names":["web"],` + host + `}`, "action: required"},
		"misspelt action":       {`{"action":"strat","names":["web"],` + host + `}`, `did you mean "start"`},
		"number for an action":  {`{"action":0,"names":["web"],` + host + `}`, "action: must be a string"},
		"register is no action": {`{"action":"register","names":["web"],` + host + `}`, "not an action"},
		"no names":              {`{"action":"start",` + host + `}`, "names: required"},
		"empty names":           {`{"action":"start","names":[],` + host + `}`, "names: required"},
		"path for a name":       {`{"action":"start","names":["../../etc/passwd"],` + host + `}`, "names[0]"},
		"quote in a pattern":    {`{"action":"start","names":["ok","a\"*"],` + host + `}`, "names[1]"},
		"direction override":    {`{"action":"start","names":["a\u202eb"],` + host + `}`, "names[0]"},
		"name in another form":  {`{"action":"start","names":["e\u0301"],` + host + `}`, "normal form C"},
		"no hosts":              {`{"action":"start","names":["web"]}`, "hosts: give a list of hosts"},
		"hosts and all":         {`{` + ok + `,"all":true}`, "hosts: give a list of hosts"},
		"empty hosts":           {`{"action":"start","names":["web"],"hosts":[]}`, "hosts: required"},
		"processes and names": {`{"action":"stop","names":["web"],"processes":[{"namespace":"shop","name":"web","agents":["a1"]}]}`,
			"names: is not allowed with processes"},
		"processes and a business": {`{"action":"stop","biz":2,"expression":"*.*.*.*.*","processes":[{"namespace":"shop","name":"web","agents":["a1"]}]}`,
			"processes: is not allowed with a business"},
		"no processes":           {`{"action":"stop","processes":[]}`, "processes: required"},
		"process without hosts":  {`{"action":"stop","processes":[{"namespace":"shop","name":"web","agents":[]}]}`, "processes[0].agents: required"},
		"pattern of a process":   {`{"action":"stop","processes":[{"namespace":"shop","name":"we?","agents":["a1"]}]}`, "processes[0].name"},
		"host as text":           {`{"action":"start","names":["web"],"hosts":["10.0.0.3"]}`, `hosts[0]: must be an object such as {"ip": "10.0.0.3"}, is the string "10.0.0.3"`},
		"host and cloud as text": {`{"action":"start","names":["web"],"hosts":["0:10.0.0.3"]}`, `hosts[0]: must be an object such as {"cloud": 0, "ip": "10.0.0.3"}, is`},
		"null host":              {`{"action":"start","names":["web"],"hosts":[null]}`, "hosts[0]: required"},
		"name for an address": {`{"action":"start","names":["web"],"hosts":[{"cloud":0,"ip":"localhost"}]}`,
			`hosts[0].ip: "localhost" is not`},
		"network for an address": {`{"action":"start","names":["web"],"hosts":[{"cloud":0,"ip":"10.0.0.1/24"}]}`,
			"hosts[0].ip"},
		"cloud of text": {`{"action":"start","names":["web"],"hosts":[{"cloud":"0","ip":"10.0.0.1"}]}`,
			"hosts[0].cloud"},
		"address of two clouds": {`{"action":"start","names":["web"],"hosts":[{"ip":"10.0.0.1"}]}`,
			"in the clouds 0, 3"},
		"agent and address": {`{"action":"start","names":["web"],"hosts":[{"agent":"a1","ip":"10.0.0.1"}]}`,
			"give either agent"},
		"offline word":         {`{` + ok + `,"when_offline":"later"}`, "when_offline"},
		"wait without offline": {`{` + ok + `,"wait_seconds":5}`, "wait_seconds"},
		"definition for patterns": {`{"action":"start","names":["w*"],` + host +
			`,"spec":{"identity":{"proc_name":"x","setup_path":"/x"}}}`, "spec: is only allowed with a namespace"},
		"definition without name": {`{` + ok + `,"spec":{"identity":{"setup_path":"/x"}}}`,
			"spec.identity.proc_name: required"},
		"relative path": {`{` + ok + `,"spec":{"identity":{"proc_name":"x","setup_path":"opt"}}}`,
			"spec.identity.setup_path: \"opt\" is not a clean absolute path"},
		"path that climbs": {`{` + ok + `,"spec":{"identity":{"proc_name":"x","setup_path":"/a/../../etc"}}}`,
			"is not a clean absolute path"},
		"NUL in a command":     {`{` + ok + `,"spec":{"identity":{"proc_name":"x","setup_path":"/x"},"control":{"start_cmd":"a\u0000b"}}}`, "spec.control.start_cmd"},
		"misspelt inside":      {`{` + ok + `,"spec":{"identity":{"proc_name":"x","setup_path":"/x"},"control":{"start":"a"}}}`, "spec.control.start: unknown"},
		"fraction of a second": {`{` + ok + `,"spec":{"identity":{"proc_name":"x","setup_path":"/x"},"monitor_policy":{"op_timeout":1.5}}}`, "spec.monitor_policy.op_timeout"},
		"label of a list":      {`{` + ok + `,"labels":{"a":[]}}`, "labels.a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			r := s.call("POST", "/api/v1/operations", c.body)
			f := r.failure(t)
			text := f.Error.Message
			for _, fault := range f.Error.Faults {
				text += "; " + fault.String()
			}

			if r.code != 400 || f.Error.Kind != gozzard.ErrInvalid || !strings.Contains(text, c.want) {
				t.Errorf("answers %d %s: %s\nwant: %s", r.code, f.Error.Kind, text, c.want)
			}
			if len(s.ops) != 0 {
				t.Error("something was operated")
			}
		})
	}
}

func TestAllFaultsAreReported(t *testing.T) {
	s := newServer(t)
	r := s.call("POST", "/api/v1/operations",
		`{"action":"go","names":["a;b",""],"hosts":[{"cloud":-1,"ip":"x"}],"foo":1}`)
	if n := len(r.failure(t).Error.Faults); n < 5 {
		t.Errorf("only %d faults are answered: %s", n, r.body)
	}
}

func TestNothingFits(t *testing.T) {
	s := newServer(t)
	for _, body := range []string{`{"action":"start","names":["nope*"],"all":true}`,
		`{"action":"start","names":["web"],"hosts":[{"agent":"unknown"}]}`} {
		if r := s.call("POST", "/api/v1/operations", body); r.code != 404 ||
			r.failure(t).Error.Kind != gozzard.ErrNotFound {
			t.Errorf("%s answers %d %s", body, r.code, r.body)
		}
	}
	if len(s.ops) != 0 {
		t.Error("something was operated")
	}
}
