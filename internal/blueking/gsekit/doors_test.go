package gsekit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/sim"
)

// ask calls the GSE door.
func (r *real) ask(call, body string, into any) {
	r.t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/api/c/compapi/v2/gse/"+call, strings.NewReader(body))
	req.Header.Set("X-Bkapi-Authorization", head)
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, req)
	var e envelope
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || *e.Code != 0 {
		r.t.Fatalf("%s: %v %s", call, err, w.Body)
	}
	if err := json.Unmarshal(e.Data, into); err != nil {
		r.t.Fatal(err)
	}
}

// TestDoorsAgree: whatever is done through either door, both doors report the same state of every instance, and it is
// the state on the machines.
func TestDoorsAgree(t *testing.T) {
	t.Parallel()
	const hosts, rounds = 2, 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	aliases := []string{"a", "b", "c", "d", "e"}
	var places []string
	type instance struct{ process, host, local int }
	var all []instance
	alias := map[int]string{}
	for h := range hosts {
		var lines []string
		for i, name := range aliases {
			id, num := 10*(h+1)+i, 1+i%2
			lines = append(lines, line(id, name, fmt.Sprintf("proc_num=%d", num)))
			alias[id] = name
			for local := range num {
				all = append(all, instance{id, h, local + 1})
			}
		}
		places = append(places, place(h+1, h, lines...))
	}

	r := newReal(t, module(places...), hosts, gsekit.Options{})
	agree := func() string {
		rows := r.processes()
		for _, in := range all {
			key := topology.Key(2, alias[in.process], in.local)
			var status struct {
				Infos []struct {
					Status int
					Auto   bool `json:"isauto"`
				} `json:"proc_infos"`
			}
			r.ask("get_proc_status",
				fmt.Sprintf(`{"meta":{"namespace":%q,"name":%q},"hosts":[{"ip":%q,"bk_cloud_id":0}]}`, key.Namespace,
					key.Name, sim.Addr(0, in.host).IP), &status)
			gse, kit := status.Infos[0], rows[in.process].Insts[in.local-1]
			runs := len(r.hosts[in.host].Live(key)) > 0
			if gse.Status != kit.Status || gse.Auto != kit.Auto || runs != (kit.Status == 1) {
				return fmt.Sprintf("%v: GSE %+v, GSEKit %+v, on its host it runs: %v", in, gse, kit, runs)
			}
		}

		return ""
	}

	words := []string{"start", "start", "stop", "restart", "reload", "force_stop", "set_auto", "unset_auto"}
	ops := map[string]int{"start": 0, "stop": 1, "set_auto": 3, "unset_auto": 4, "restart": 7, "reload": 8,
		"force_stop": 9}
	for range rounds {
		word := words[rnd.IntN(len(words))]
		chosen := map[int]bool{}
		for id := range alias {
			chosen[id] = rnd.IntN(2) == 0
		}
		if rnd.IntN(2) == 0 {
			var ids []int
			for id, ok := range chosen {
				if ok {
					ids = append(ids, id)
				}
			}
			if len(ids) > 0 {
				r.run(word, ids...)
			}
		} else {
			var items []string
			for _, in := range all {
				if chosen[in.process] {
					key := topology.Key(2, alias[in.process], in.local)
					items = append(items,
						fmt.Sprintf(`{"meta":{"namespace":%q,"name":%q},"op_type":%d,"hosts":[{"ip":%q,"bk_cloud_id":0}],"spec":{"identity":{"proc_name":%q,"setup_path":"/srv",`+
							`"pid_path":"/run/x.pid","user":"root"},"control":{"start_cmd":"ok","stop_cmd":"ok","restart_cmd":"ok","reload_cmd":"ok","kill_cmd":"ok"},"monitor_policy":{"start_check_secs":0}}}`,
							key.Namespace, key.Name, ops[word], sim.Addr(0, in.host).IP, alias[in.process]))
				}
			}
			if len(items) > 0 {
				r.operate(strings.Join(items, ","))
			}
		}
		why := ""
		r.until("both doors agree after "+word, func() bool { why = agree(); return why == "" })
	}
}

// operate calls operate_proc_multi and waits for the result.
func (r *real) operate(items string) {
	r.t.Helper()
	var task struct {
		ID string `json:"task_id"`
	}
	r.ask("operate_proc_multi", `{"proc_operate_req":[`+items+`]}`, &task)

	r.until("the operation ends", func() bool {
		entries := map[string]struct {
			Code int `json:"error_code"`
		}{}
		r.ask("get_proc_operate_result_v2", fmt.Sprintf(`{"task_id":%q}`, task.ID), &entries)
		for _, e := range entries {
			if e.Code == 115 {
				return false
			}
		}
		return true
	})
}
