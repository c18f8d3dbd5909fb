//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/sim"
)

// agentsDir is the folder of the agents of one process.
func (b *bench) agentsDir(s *testServer, first int) string {
	return filepath.Join(b.shm, filepath.Base(s.data), strconv.Itoa(first))
}

// prepare makes a server and the state of a fleet: the processes are registered and started on the first host through
// the API. The other hosts get copies of its journal and of its rows in the record, because registering them one by one
// would take longer than everything else.
func (b *bench) prepare(ctx context.Context, way string, n int) (_ *testServer, err error) {
	s, err := b.newServer(way)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer func() { s.Stop() }()

	// Enrol all hosts.
	if way == wayTLS {
		if err := b.enrolAll(ctx, s, n); err != nil {
			return nil, err
		}
	}

	// Register and start the processes of the first host.
	first, err := b.startPart("agents", order{Way: way, Server: s.agents, Data: s.data, Dir: b.agentsDir(s, 0), N: 1})
	if err != nil {
		return nil, err
	}
	defer first.Stop()
	if err := s.registerAll(ctx, b.processes, first); err != nil {
		return nil, err
	}
	if err := s.awaitStatus(ctx, 1, first); err != nil {
		return nil, err
	}
	first.Stop()
	template, dir := filepath.Join(b.shm, "template"), filepath.Join(b.agentsDir(s, 0), string(sim.AgentID(0)))
	if err := errors.Join(os.RemoveAll(template), os.CopyFS(template, os.DirFS(dir)), os.Chmod(template, 0o700)); err != nil {
		return nil, fmt.Errorf("cannot copy the state of the first host: %w", err)
	}

	// Copy what the record has of it.
	s.Stop()
	return s, copyRecord(ctx, filepath.Join(s.data, backup.RecordFile), n)
}

// enrolAll enrols the hosts.
func (b *bench) enrolAll(ctx context.Context, s *testServer, n int) error {
	b.say("%d hosts enrol", n)
	text, err := s.call(ctx, http.MethodPost, "/api/v1/enrol/tokens", client.EnrolTokenRequest{TTL: "1h", Uses: n})
	if err != nil {
		return err
	}
	var made client.EnrolToken
	if err := json.Unmarshal(text, &made); err != nil {
		return err
	}
	token, err := enrol.ParseToken(made.Token)
	if err != nil {
		return err
	}

	const atOnce = 8
	var wg sync.WaitGroup
	errs := make(chan error, atOnce)
	for w := range atOnce {
		wg.Go(func() {
			for i := w; i < n && ctx.Err() == nil; i += atOnce {
				dir := filepath.Join(b.agentsDir(s, i/maxAgents*maxAgents), string(sim.AgentID(i)))
				if err := enrolHost(ctx, s.base, token, dir, i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// registerAll registers and starts processes on the first host.
func (s *testServer) registerAll(ctx context.Context, processes int, agent *child.Process) error {
	if err := s.awaitCount(ctx, "/api/v1/hosts?limit=1", 1, agent); err != nil {
		return err
	}

	for i := range processes {
		body := request(i, opStart, 1)
		err := child.Until(ctx, time.Minute, "the first host", func() (bool, error) {
			text, err := s.call(ctx, http.MethodPost, "/api/c/compapi/v2/gse/operate_proc_v2/", body)
			if err != nil {
				return false, err
			}
			var answer struct {
				Result  bool
				Message string
			}
			if err := json.Unmarshal(text, &answer); err != nil {
				return false, err
			}
			return answer.Result, fmt.Errorf("%s", answer.Message)
		}, agent)
		if err != nil {
			return err
		}
	}
	return nil
}

// Operations. A reload does not change a process, so it can be repeated without end.
const (
	opStart  = 0
	opReload = 8
)

// request is an operation on a process of the first hosts.
func request(process, op, hosts int) map[string]any {
	list := make([]map[string]any, hosts)
	for i := range list {
		list[i] = map[string]any{"ip": sim.Addr(0, i).IP.String(), "bk_cloud_id": 0}
	}
	name := procKey(process).Name
	dir := "/data/bench/" + name
	return map[string]any{
		"meta":    map[string]any{"namespace": namespace, "name": name, "labels": map[string]string{"proc_name": name}},
		"hosts":   list,
		"op_type": op,
		"spec": map[string]any{
			"identity": gozzard.Identity{ProcName: name, SetupPath: dir, PIDPath: dir + "/" + name + ".pid", User: "root"},
			"control": gozzard.Control{Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh",
				Reload: "./reload.sh", Kill: "./kill.sh"},
			"resource":       gozzard.Resource{CPU: 50, Mem: 50},
			"monitor_policy": map[string]any{"auto_type": 1},
		},
	}
}

// copyRecord gives the other hosts the registered processes of the first one. The server does not run.
func copyRecord(ctx context.Context, path string, n int) error {
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{Log: slog.New(slog.DiscardHandler), Fatal: func(error) {}})
	if err != nil {
		return err
	}
	defer store.Close()

	var known []record.Process
	for p, err := range store.Processes(ctx, nil) {
		if err != nil {
			return err
		}
		known = append(known, p)
	}

	for i := range known {
		t := record.NewTask{Task: gozzard.Task{At: time.Now(), Caller: gozzard.Caller{App: "bench"}},
			Audit: gozzard.AuditRow{At: time.Now(), Caller: gozzard.Caller{App: "bench"}}}
		for host := 1; host < n; host++ {
			p := known[i]
			p.ID.Agent = sim.AgentID(host)
			t.Register = append(t.Register, p)
		}
		if _, err := store.Accept(ctx, &t); err != nil {
			return fmt.Errorf("cannot copy the registered processes: %w", err)
		}
	}
	return nil
}

func enrolHost(ctx context.Context, url string, token enrol.Token, dir string, i int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err := enrol.Join(ctx, enrol.JoinOptions{Server: url, Token: token, Dir: dir, Agent: sim.AgentID(i),
		IPs: []netip.Addr{sim.Addr(0, i).IP}, Hostname: string(sim.AgentID(i)), Machine: machineOf(i)})
	return err
}
