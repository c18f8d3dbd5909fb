//go:build linux

package fleettest_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers of the record
	_ "modernc.org/sqlite"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

// TestConfigOnManyHosts releases one content to many simulated hosts, and then another content to each of them. The record has
// equal contents once.
func TestConfigOnManyHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	const hosts = 300
	s := ft.StartServer(t, "")
	s.StartSim(t, hosts)
	admin := &tenant{API: s.API, t: t}
	ft.Until(t, time.Minute, func() string { return "the hosts do not come" }, func() bool {
		_, text := admin.native(http.MethodGet, "/api/v1/hosts?limit=1000", nil, nil)
		return strings.Count(text, `"online":true`) == hosts
	})

	// A business with a process on each host.
	var places []string
	var processes []int
	for i := range hosts {
		places = append(places, fmt.Sprintf("{id: %d, name: s%[1]d, host: {ip: %s, cloud: 0}, processes: [{id: %d, name: many, user: nobody, %s}]}",
			i+1, sim.Addr(0, i).IP, 1000+i, idleProcess))
		processes = append(processes, 1000+i)
	}
	applyTopology(t, s.API, 2, "biz: 2\nname: b\nsets:\n  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: ["+
		strings.Join(places, ", ")+"]}]}\n")

	for _, c := range []struct {
		name, content string
		texts         int
	}{
		{"one", "the same for all\n", 1},
		{"each", "listen ${bk_host_innerip};\n", hosts},
	} {
		put := ft.J{"biz": 2, "name": c.name, "file_name": c.name + ".conf", "folder": "/data/app", "owner": "nobody", "group": "nogroup",
			"content": c.content, "bind": ft.J{"processes": processes}}
		var made client.ConfigApplied
		if code, text := admin.native(http.MethodPut, "/api/v1/config/templates", put, &made); code != http.StatusOK {
			t.Fatalf("%d %.2000s", code, text)
		}
		before := textsOf(t, s)
		for _, body := range []ft.J{{"work": "generate"}, {"work": "release", "confirm": hosts}} {
			body["templates"] = []int64{made.Template}
			job, states := admin.configWork(body)
			digests := map[string]bool{}
			for _, task := range job.List {
				for _, f := range task.Files {
					digests[f.SHA256] = true
				}
			}
			if job.Tasks["succeeded"] != hosts || len(states) != hosts || len(digests) != c.texts {
				t.Fatalf("%s of %q: %v, %d contents, want %d", body["work"], c.name, job.Tasks, len(digests), c.texts)
			}
		}
		if got := textsOf(t, s) - before; got != c.texts {
			t.Errorf("the record has %d contents of %q, want %d", got, c.name, c.texts)
		}
	}
}

// textsOf counts the contents in the record of a server.
func textsOf(t *testing.T, s *ft.Server) (n int) {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(s.Data, "gozzard.db")+"?mode=ro&_pragma=busy_timeout(10000)"
	if ft.InPostgres(t) {
		pg, name := ft.DatabaseOf(t, s.Data)
		driver, source = "pgx", pg.URL(name)
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM config_texts").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
