//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/sim"
)

// The business whose configuration file is released, and the most hosts that it has.
const (
	releaseBiz   = 2
	releaseHosts = 2000
	releaseText  = 20_000 // bytes of the template, about
)

// fanRelease measures the release of a configuration file whose content is another one on each host.
func (b *bench) fanRelease(ctx context.Context, s *testServer, m *measured, agents []*child.Process) error {
	hosts := min(m.agents, releaseHosts)
	template, err := s.makeTemplate(ctx, hosts)
	if err != nil {
		return err
	}

	m.generated, err = b.fanTasks(s, hosts, 1, agents, func(int) (time.Duration, error) {
		return s.work(ctx, template, hosts, "generate")
	})
	if err != nil {
		return err
	}
	m.released, err = b.fanTasks(s, hosts, 1, agents, func(int) (time.Duration, error) {
		return s.work(ctx, template, hosts, "release")
	})
	if err != nil {
		return err
	}
	b.say("%s: a template of %d KB for %d hosts: generated after %s, released after %s, %s of CPU per host", m, releaseText/1000, hosts,
		m.generated.whole.Round(time.Millisecond), m.released.whole.Round(time.Millisecond), m.generated.cpu+m.released.cpu)
	return nil
}

// makeTemplate makes a business with a process on each host, and a template for them.
func (s *testServer) makeTemplate(ctx context.Context, hosts int) (id int64, err error) {
	var places []string
	r := client.ConfigRequest{Biz: releaseBiz, Name: "bench", FileName: "release.conf", Folder: "/data/app", Owner: "root", Group: "root",
		Bind: &client.ConfigBind{}}
	for i := range hosts {
		places = append(places, fmt.Sprintf(`{"id":%d,"name":"s%[1]d","host":{"ip":%q,"cloud":0},"processes":[{"id":%[1]d,"name":"bench","user":"root",`+
			`"work_path":"/data","pid_file":"/run/bench.pid","start_cmd":"./start.sh","stop_cmd":"./stop.sh"}]}`, i+1, sim.Addr(0, i).IP))
		r.Bind.Processes = append(r.Bind.Processes, i+1)
	}
	document := fmt.Sprintf(`{"biz":%d,"name":"bench","sets":[{"id":1,"name":"s","env":3,"modules":[{"id":1,"name":"m","instances":[%s]}]}]}`,
		releaseBiz, strings.Join(places, ","))
	if _, err := s.Call(ctx, http.MethodPut, fmt.Sprintf("/api/v1/topology/%d", releaseBiz), json.RawMessage(document)); err != nil {
		return 0, err
	}

	line := "listen ${bk_host_innerip}:${8000 + InstID}; # ${bk_set_name} ${bk_module_name}\n"
	r.Content = strings.Repeat(line, releaseText/len(line))
	text, err := s.Call(ctx, http.MethodPut, "/api/v1/config/templates", r)
	if err != nil {
		return 0, err
	}
	var made client.ConfigApplied
	if err := json.Unmarshal(text, &made); err != nil || made.Template == 0 {
		return 0, fmt.Errorf("the template was not made: %.300s", text)
	}
	return made.Template, nil
}

// work starts a job on the files of all hosts and waits for its end.
func (s *testServer) work(ctx context.Context, template int64, hosts int, what string) (accepted time.Duration, err error) {
	r := client.ConfigJobRequest{Work: what, Templates: []int64{template}}
	r.Biz, r.Expression = releaseBiz, "*.*.*.*.*"
	if what == "release" {
		r.Confirm = hosts
	}
	began := time.Now()
	text, err := s.Call(ctx, http.MethodPost, "/api/v1/config/jobs", r)
	if err != nil {
		return 0, err
	}
	accepted = time.Since(began)

	var job client.ConfigJob
	if err := json.Unmarshal(text, &job); err != nil || job.ID == 0 {
		return 0, fmt.Errorf("the job was not accepted: %.300s", text)
	}
	path := fmt.Sprintf("/api/v1/config/jobs/%d?biz=%d", job.ID, releaseBiz)
	for !job.Done() {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		if err := s.Get(ctx, path, &job); err != nil {
			return 0, err
		}
	}
	if job.State != "succeeded" || job.Tasks["succeeded"] != hosts {
		return 0, fmt.Errorf("to %s: %s %v %s", what, job.State, job.Tasks, job.Message)
	}
	return accepted, nil
}

// addRelease adds the figures of the release.
func (r *results) addRelease(m *measured) {
	for _, f := range []struct {
		what string
		*fanned
	}{{"generated", &m.generated}, {"released", &m.released}} {
		r.release.Add(fmt.Sprintf("%s, %s for %d hosts", m, f.what, f.targets), fmt.Sprintf("%.2f s", f.whole.Seconds()),
			fmt.Sprintf("%.0f µs; the simulated hosts take %.0f %% of the CPU of both", float64(f.cpu)/1e3, 100*f.agents), "", "")
	}
}
