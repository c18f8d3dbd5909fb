package api_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
	"github.com/gozzard/gozzard/test/storetest"
)

// businesses is the part of a real control plane that knows businesses; operations stay with the fake.
type businesses struct{ real *control.Plane }

func (b *businesses) ApplyTopology(ctx context.Context, req record.ApplyRequest) (record.ApplyAnswer, error) {
	return b.real.ApplyTopology(ctx, req)
}

func (b *businesses) Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error) {
	return b.real.Business(ctx, caller, biz)
}

func (b *businesses) Businesses(caller gozzard.Caller) []record.BusinessHead {
	return b.real.Businesses(caller)
}

func (b *businesses) FindProcesses(caller gozzard.Caller, q topology.Query) (int, []topology.Row) {
	return b.real.FindProcesses(caller, q)
}

func (b *businesses) TopologyItems(ctx context.Context, biz int, rows []topology.Row,
	a gozzard.Action) ([]record.TopologyItem, error) {
	return b.real.TopologyItems(ctx, biz, rows, a)
}

func (b *businesses) TopologyTree(caller gozzard.Caller, biz int, env topology.Env) []index.SetCount {
	return b.real.TopologyTree(caller, biz, env)
}

// newBusinessServer is newServer with a place for businesses, over the same fleet.
func newBusinessServer(t testing.TB) *server {
	t.Helper()
	s := newServer(t)

	path := filepath.Join(t.TempDir(), "gozzard.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path,
		sqlstore.Options{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})

	real, err := control.New(t.Context(), control.Options{Store: store, Topology: store, Live: s.Index})
	if err != nil {
		t.Fatal(err)
	}

	s.plane.businesses = &businesses{real}
	return s
}

const shop = `biz: 2
name: 商店
clouds: [{id: 0, name: default area}, {id: 3, name: far}]
sets:
  - id: 5
    name: front.end
    env: 3
    modules:
      - id: 21
        name: web
        service_template_id: 26
        instances:
          - id: 5
            name: 10.0.0.1_web
            host: {ip: 10.0.0.1, cloud: 0}
            processes: [{id: 46, name: nginx, proc_num: 2, user: root, work_path: /opt, pid_file: /run/nginx.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]
          - id: 6
            name: 10.0.0.2_web
            host: {ip: 10.0.0.2, cloud: 0}
            processes: [{id: 48, name: nginx, user: root, work_path: /opt, pid_file: /run/nginx.pid, start_cmd: ./start.sh}]
  - id: 7
    name: 测试
    env: 1
    modules:
      - id: 23
        name: db
        instances:
          - id: 8
            name: 10.0.0.1_db
            host: {ip: 10.0.0.1, cloud: 3}
            processes: [{id: 49, name: mysql, user: root, work_path: /opt, pid_file: /run/mysql.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]
`

func yamlBody(r *http.Request) { r.Header.Set("Content-Type", "application/yaml") }

// put applies the shop and reports one of its processes.
func (s *server) putShop(t testing.TB) {
	t.Helper()
	if r := s.call("PUT", "/api/v1/topology/2", shop, yamlBody); r.code != 200 {
		t.Fatalf("answers %d %s", r.code, r.body)
	}
	s.Full("a1", 1, 0, 1, []gozzard.Status{{Key: topology.Key(2, "nginx", 1), State: gozzard.StateRunning, Hosted: true,
		PID: 5, ReportedAt: 9, CPU: 1.5}})
}
