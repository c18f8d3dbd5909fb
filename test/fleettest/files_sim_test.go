//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

// TestFilesOnManyHosts writes one content on many simulated hosts, as one task.
func TestFilesOnManyHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	const hosts = 300
	s := ft.StartServer(t, "")
	s.StartSim(t, hosts)
	admin := &tenant{API: s.API, t: t}
	ft.Until(t, time.Minute, func() string { return "the hosts do not come" }, func() bool {
		_, text := admin.native(http.MethodGet, "/api/v1/hosts?limit=1000", nil, nil)
		return strings.Count(text, `"online":true`) == hosts
	})

	body := write("/data/app/web.conf", "nobody", strings.Repeat("a line of a configuration file\n", 600), nil)
	var list []ft.J
	for i := range hosts {
		list = append(list, ft.J{"agent": sim.AgentID(i)})
	}
	body["hosts"] = list
	begin := time.Now()
	text := admin.put(body)
	if want := fmt.Sprintf(`"done":%d`, hosts); !strings.Contains(text, want) {
		t.Fatalf("%.2000s", text)
	}
	t.Logf("%d hosts have 18 KB in %s", hosts, time.Since(begin).Round(time.Millisecond))
}
