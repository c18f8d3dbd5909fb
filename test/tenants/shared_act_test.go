//go:build linux

package tenants_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

const kitDoor = "/api/c/compapi/v2/gsekit/api/"

// restore makes tenants remove whatever they have and start the processes that they keep, one by each door.
func (w *shared) restore(parties ...*party) {
	w.t.Helper()
	for _, p := range parties {
		w.clear(p)
	}

	// A tenant that does not get all of them asks again: a pid file may still name what one of its own requests left.
	var missing []string
	ft.Until(w.t, 2*time.Minute, func() string { return fmt.Sprint("tenants cannot run their processes ", missing) },
		func() bool {
			for _, p := range parties {
				w.startKept(p)
			}
			w.settle()
			missing = nil
			for _, p := range parties {
				for _, name := range keptProcesses {
					if l, ok := lifeOf(w.g.pidFile(p, name)); !ok || l.uid != p.uid {
						missing = append(missing, p.name+" "+name)
					}
				}
			}
			return len(missing) == 0
		})
}

// clear makes a tenant remove whatever it has. A process with an operation in progress cannot be removed, so it asks
// again. What was only taken out of supervision, with a definition that came with that request, is not on record: it
// stays on the host, where nothing starts it.
func (w *shared) clear(p *party) {
	w.t.Helper()
	var left, got string
	ft.Until(w.t, time.Minute, func() string { return p.name + " cannot remove what it has: " + got }, func() bool {
		_, left = w.call(w.t.Context(), p.name, &request{method: http.MethodGet, path: "/api/v1/processes?limit=100"})
		if strings.Contains(left, `"count":0,`) {
			return true
		}
		got = w.send(p, "api", &request{method: http.MethodDelete, path: "/api/v1/processes",
			body: encode(object{"namespace": "*", "names": []string{"*"}, "all": true})})
		w.settle()
		m := taskMade.FindStringSubmatch(got)
		if m == nil {
			return false
		}
		_, got = w.call(w.t.Context(), p.name, &request{method: http.MethodGet, path: "/api/v1/tasks/" + m[1]})
		return strings.Count(got, `"agent":`) == strings.Count(got, `"code":"no_definition"`)
	})
}

// keptProcesses are those that a tenant keeps.
var keptProcesses = []string{"v-api", "v-own", "v-gse", "v-hidden", "v-gateway", "v-job", "v-kit", "v-kit-own"}

// startKept starts the processes that a tenant keeps.
func (w *shared) startKept(p *party) {
	w.t.Helper()
	space := fmt.Sprintf("JOB_BIZ_%d", p.biz)
	spec := func(door, name string) object {
		file := w.g.pidFile(p, name)
		control := object{}
		for _, event := range []string{"start", "stop", "restart", "reload", "kill"} {
			control[event+"_cmd"] = strings.Join([]string{w.g.life, event, p.mark + "-" + door + "-0", file}, " ")
		}
		return object{"identity": object{"proc_name": "life", "setup_path": p.dir, "pid_path": file, "user": p.account},
			"control": control, "resource": object{"cpu": 90, "mem": 90},
			"monitor_policy": object{"auto_type": 1, "start_check_secs": 1, "stop_check_secs": 1, "op_timeout": 20}}
	}
	meta := func(name string) object {
		return object{"namespace": space, "name": name, "labels": object{"proc_name": p.mark}}
	}
	post := func(door, path string, body object) {
		w.send(p, door, &request{method: http.MethodPost, path: path, body: encode(body)})
	}

	for name, host := range map[string]int{"v-api": 0, "v-own": 1} {
		post("api", "/api/v1/operations", object{"action": "start", "namespace": space, "names": []string{name},
			"hosts": []object{{"cloud": 0, "ip": fmt.Sprint("127.0.0.", p.hosts[host])}}, "spec": spec("api", name)})
	}
	post("gse", "/api/c/compapi/v2/gse/operate_proc_multi/", object{"proc_operate_req": []object{
		{"meta": meta("v-gse"), "op_type": 0, "hosts": []object{ft.Host(1)}, "spec": spec("gse", "v-gse")},
		{"meta": meta(p.mark + "-hidden"), "op_type": 0, "hosts": []object{ft.Host(1)}, "spec": spec("gse", "v-hidden")}}})
	post("gateway", "/api/v2/proc/operate_proc_v2", object{"meta": meta("v-gateway"), "op_type": 0,
		"agent_id_list": []string{w.agentIDs[1]}, "spec": spec("gateway", "v-gateway")})
	job := spec("job", "v-job")
	info := object{"setup_path": p.dir, "proc_name": "life", "pid_path": w.g.pidFile(p, "v-job"),
		"account": p.account, "type": 1, "value_key": "v-job", "ip_list": []object{{"bk_cloud_id": 0, "ip": "127.0.0.1"}}}
	maps.Copy(info, job["control"].(object))
	post("job", "/api/c/compapi/v2/job/operate_process/", object{"bk_biz_id": p.biz, "op_type": 0,
		"process_infos": []object{info}})
	post("gsekit", kitDoor+"job/create_job/", object{"bk_biz_id": p.biz, "job_object": "process", "job_action": "start",
		"expression_scope": object{"bk_set_env": "3", "bk_set_name": "*", "bk_module_name": "*",
			"service_instance_name": "*", "bk_process_name": "*", "bk_process_id": "*"}})
}

// attack sends random requests of a tenant: those that only read, or all.
func (w *shared) attack(p *party, n int, seed uint64, reads bool) {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 11)), app: p.name, routes: allRoutes(w.t)}
	words := &sharedWords{maker: m, fleet: w, me: p}
	m.words = words
	var all, acting []route
	for _, rt := range m.routes {
		if rt.method != http.MethodGet && rt.writes() && reads {
			continue
		}
		all = append(all, rt)
		operates := strings.HasSuffix(rt.path, "/operations") || strings.HasSuffix(rt.path, "/processes")
		if rt.writes() && (rt.door != "api" || operates) {
			acting = append(acting, rt)
		}
	}
	byDoor := func(list []route) route {
		door := pick(m, "api", "gse", "gse", "job", "gsekit")
		of := slices.DeleteFunc(slices.Clone(list), func(rt route) bool { return rt.door != door })
		return pick(m, of...)
	}

	for i := range n {
		rt := byDoor(all)
		if !reads && m.IntN(2) == 0 {
			rt = byDoor(acting)
		}
		door := doorOf(rt)
		words.plain, words.mark = m.IntN(5) < 2, fmt.Sprintf("%s-%s-%d", p.mark, door, 1+i)
		r := m.to(rt)
		if m.IntN(4) == 0 {
			r.key += "boss"
		}
		w.send(p, door, r)
	}
}

// doorOf tells the two doors of GSE apart.
func doorOf(rt route) string {
	if rt.door == "gse" && !strings.Contains(rt.path, "/compapi/") {
		return "gateway"
	}
	return rt.door
}

// swapLinks runs a process of each attacker that swaps links between its own folder and those of others. The function
// that it returns ends them and returns the number of swaps.
func (w *shared) swapLinks() func() int {
	w.t.Helper()
	var ends []func() int
	for _, p := range w.g.parties[:2] {
		args := []string{"swap", filepath.Join(p.dir, "links"), filepath.Join(p.dir, "scratch")}
		for _, q := range w.g.parties {
			if q != p {
				args = append(args, filepath.Join(q.dir, "keep"), filepath.Join(q.dir, "run", "v-api"), q.dir)
			}
		}
		cmd := exec.Command(w.g.life, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: ft.Credential(w.t, p.account)}
		in, err := cmd.StdinPipe()
		if err != nil {
			w.t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		ends = append(ends, sync.OnceValue(func() int {
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				w.t.Errorf("the process that swaps links ended: %v", err)
			}
			n, _ := strconv.Atoi(strings.TrimSpace(out.String()))
			return n
		}))
	}
	end := func() (n int) {
		for _, f := range ends {
			n += f()
		}
		return n
	}
	w.t.Cleanup(func() { end() })
	return end
}

// listen reads the event stream of a tenant until the returned function is called, which returns what was read.
func (w *shared) listen(p *party) func() string {
	ctx, cancel := context.WithCancel(w.t.Context())
	got := make(chan string, 1)
	go func() {
		_, text := w.call(ctx, p.name, &request{method: http.MethodGet, path: "/api/v1/events/stream"})
		got <- text
	}()
	end := sync.OnceValue(func() string {
		cancel()
		return <-got
	})
	w.t.Cleanup(func() { end() })
	return end
}

// learn finds out the digests of definitions, which a tenant could compute or guess.
func (w *shared) learn() {
	w.t.Helper()
	_, got := w.call(w.t.Context(), w.s.Cred.AppCode, &request{method: http.MethodGet,
		path: "/api/v1/audit?newest=true&limit=100"})
	list := digest.FindAllString(got, -1)
	w.mu.Lock()
	w.digests = list
	w.mu.Unlock()
}

var digest = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// picture is what the server has on record for a tenant: its supervised processes and its topology.
func (w *shared) picture(p *party) string {
	w.t.Helper()
	var page struct{ Processes []object }
	w.admin(http.MethodGet, fmt.Sprintf("/api/v1/processes?namespace=*_BIZ_%d&limit=100", p.biz), nil, &page)
	var b strings.Builder
	for _, row := range page.Processes {
		if row["managed"] != true {
			continue
		}
		for _, measured := range []string{"cpu", "mem", "fd", "disk", "net", "reported_at", "stale", "message"} {
			delete(row, measured)
		}
		b.WriteString(encode(row) + "\n")
	}

	var doc object
	w.admin(http.MethodGet, fmt.Sprint("/api/v1/topology/", p.biz), nil, &doc)
	return b.String() + encode(doc)
}
