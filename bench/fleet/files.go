//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/sim"
)

// The sizes of a file that is written on all hosts: as most configuration files, and one that travels in parts. The large one is
// written on fewer hosts: the simulated hosts hold it in memory.
const (
	fileSmall      = 20 << 10
	fileLarge      = 1 << 20
	fileLargeHosts = 500
	fileRounds     = 3
)

// fanFiles measures a file that is written on all hosts, with one content for all.
func (b *bench) fanFiles(ctx context.Context, s *testServer, m *measured, agents []*child.Process) error {
	for _, f := range []struct {
		hosts, size int
		to          *fanned
	}{{m.agents, fileSmall, &m.files}, {min(m.agents, fileLargeHosts), fileLarge, &m.filesLarge}} {
		var err error
		*f.to, err = b.fanTasks(s, f.hosts, fileRounds, agents, func(i int) (time.Duration, error) {
			return s.writeAll(ctx, f.hosts, f.size, i)
		})
		if err != nil {
			return err
		}
		b.say("%s: a file of %d KB on %d hosts: accepted after %s, all verdicts read after %s, %s of CPU per host", m, f.size>>10, f.hosts,
			f.to.accepted.Round(time.Millisecond), f.to.whole.Round(time.Millisecond), f.to.cpu)
	}
	return nil
}

// writeAll writes a file on hosts and waits for their verdicts. Each round has another content.
func (s *testServer) writeAll(ctx context.Context, hosts, size, round int) (accepted time.Duration, err error) {
	line := fmt.Sprintf("a line of round %d of a configuration file\n", round)
	content := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(line, size/len(line)+1)[:size]))
	r := client.FileRequest{Namespace: namespace, Path: "/data/app/bench.conf", Account: "root", ContentBase64: &content, Confirm: hosts}
	for i := range hosts {
		r.Hosts = append(r.Hosts, client.Host{Agent: sim.AgentID(i)})
	}

	began := time.Now()
	text, err := s.Call(ctx, http.MethodPut, "/api/v1/files", r)
	if err != nil {
		return 0, err
	}
	accepted = time.Since(began)
	var task client.Accepted
	if err := json.Unmarshal(text, &task); err != nil || task.TaskID == "" {
		return 0, fmt.Errorf("the task was not accepted: %.300s", text)
	}
	return accepted, s.AwaitTask(ctx, task.TaskID, hosts)
}

// addFiles adds the figures of files on all hosts.
func (r *results) addFiles(m *measured) {
	for _, f := range []struct {
		size int
		*fanned
	}{{fileSmall, &m.files}, {fileLarge, &m.filesLarge}} {
		r.files.Add(fmt.Sprintf("%s, %d KB on %d hosts", m, f.size>>10, f.targets),
			fmt.Sprintf("%.2f s, accepted after %.2f s", f.whole.Seconds(), f.accepted.Seconds()),
			fmt.Sprintf("%.0f µs; the simulated hosts take %.0f %% of the CPU of both", float64(f.cpu)/1e3, 100*f.agents), "", "")
	}
}
