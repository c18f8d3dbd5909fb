//go:build linux

package ledger_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
)

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// The verdicts of a scripted server.
var (
	saysOK          = ft.Entry{Code: 0, Msg: "success"}
	saysOffline     = ft.Entry{Code: 117, Msg: "the agent is not connected"}
	saysNever       = ft.Entry{Code: 65535, Msg: "not executed: superseded"}
	saysInterrupted = ft.Entry{Code: 65535, Msg: "interrupted: the agent ended"}
	saysFailed      = ft.Entry{Code: 65535, Msg: "exit status 1"}
)

// scripted is a server that accepts every operation. choose decides by the mark how often it is carried out and what
// the verdict is.
func scripted(t *testing.T, choose func(mark string) (effects int, e ft.Entry)) *ft.API {
	var mu sync.Mutex
	verdicts := map[string]ft.Entry{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			TaskID string `json:"task_id"`
			Spec   struct {
				Identity struct {
					SetupPath string `json:"setup_path"`
				} `json:"identity"`
				Control struct {
					Reload string `json:"reload_cmd"`
				} `json:"control"`
			} `json:"spec"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}

		mu.Lock()
		defer mu.Unlock()

		if strings.Contains(r.URL.Path, "get_proc_operate_result") {
			_ = json.NewEncoder(w).Encode(ft.J{"result": true, "code": 0, "data": ft.J{"key": verdicts[body.TaskID]}})
			return
		}

		mark := r.Header.Get("Idempotency-Key")
		effects, e := choose(mark)
		for range effects {
			cmd := exec.Command("sh", "-c", body.Spec.Control.Reload)
			cmd.Dir = body.Spec.Identity.SetupPath
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		}

		verdicts[mark] = e
		_ = json.NewEncoder(w).Encode(ft.J{"result": true, "code": 0, "data": ft.J{"task_id": mark}})
	}))

	t.Cleanup(srv.Close)
	api := &ft.API{}
	api.Cred.URL = srv.URL
	return api
}

// TestJudge runs the check of the ledger against servers that work correctly or wrongly. The one that rejects
// everything does nothing wrong, and must fail too.
func TestJudge(t *testing.T) {
	always := func(effects int, e ft.Entry) func(string) (int, ft.Entry) {
		return func(string) (int, ft.Entry) { return effects, e }
	}

	// Correct, except for operations after the fault.
	calmOnly := func(effects int, e ft.Entry) func(string) (int, ft.Entry) {
		return func(mark string) (int, ft.Entry) {
			if strings.Contains(mark, "calm") {
				return effects, e
			}
			return 1, saysOK
		}
	}

	during := func(effects int, e ft.Entry) func(string) (int, ft.Entry) { // correct only after the fault
		return func(mark string) (int, ft.Entry) {
			if strings.Contains(mark, "calm") {
				return 1, saysOK
			}
			return effects, e
		}
	}

	const sent, calm = 30, 10
	for name, tt := range map[string]struct {
		choose func(string) (int, ft.Entry)
		least  ledger.Floor
		fails  string // "" when it must pass
	}{
		"all executed":                {always(1, saysOK), ledger.Floor{OK: 40, Percent: 100}, ""},
		"all refused as offline":      {always(0, saysOffline), ledger.Floor{OK: 1}, "denied"},
		"all refused, no floor":       {always(0, saysOffline), ledger.Floor{}, "denied"},
		"all refused in words":        {always(0, saysNever), ledger.Floor{OK: 1}, "denied"},
		"refused after the fault":     {calmOnly(0, saysOffline), ledger.Floor{OK: 1}, "denied"},
		"interrupted after the fault": {calmOnly(1, saysInterrupted), ledger.Floor{OK: 1}, "denied"},
		"refused during the fault": {during(0, saysOffline), ledger.Floor{OK: 20},
			"10 operations were executed, at least 20"},
		"refused during the fault, by share": {during(0, saysOffline), ledger.Floor{Percent: 50},
			"10 operations of 40 were executed, at least 50 %"},
		"refused during the fault, no floor": {during(0, saysOffline), ledger.Floor{}, ""},
		"none interrupted": {always(1, saysOK), ledger.Floor{Interrupted: 1},
			"0 operations were interrupted, at least 1"},
		"interrupted, with effects":           {during(1, saysInterrupted), ledger.Floor{Interrupted: sent}, ""},
		"interrupted, without":                {during(0, saysInterrupted), ledger.Floor{Interrupted: sent}, ""},
		"interrupted, done twice":             {during(2, saysInterrupted), ledger.Floor{}, "30 twice"},
		"executed twice":                      {during(2, saysOK), ledger.Floor{}, "30 twice"},
		"said to be executed":                 {during(0, saysOK), ledger.Floor{}, "30 wrong"},
		"said to be not executed":             {during(1, saysNever), ledger.Floor{}, "30 wrong"},
		"said to be offline":                  {during(1, saysOffline), ledger.Floor{}, "30 wrong"},
		"failed, which such a command cannot": {during(0, saysFailed), ledger.Floor{}, "30 wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			l := ledger.New(r, scripted(t, tt.choose))
			never := make(chan struct{})
			for i := range sent {
				l.Send(fmt.Sprintf("m%d", i), 1, i%4, never)
			}
			l.Afterwards(calm, 1)
			l.Judge("of the judge: "+name, tt.least)
			got := strings.Join(r.failures, "\n")
			if (got == "") != (tt.fails == "") || !strings.Contains(got, tt.fails) {
				t.Errorf("failures %q, want %q", got, tt.fails)
			}
		})
	}

	t.Run("nothing sent", func(t *testing.T) {
		r := &recorder{TB: t}
		ledger.New(r, scripted(t, always(1, saysOK))).Judge("of the judge: nothing sent", ledger.Floor{})
		if len(r.failures) != 1 || !strings.Contains(r.failures[0], "no operation was acknowledged") {
			t.Errorf("failures %q", r.failures)
		}
	})
}
