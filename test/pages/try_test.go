//go:build linux

package pages_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gozzard/gozzard/test/pgtest"
)

var tryRounds = flag.Int("try.rounds", 1, "how often each part of docs/try-several-servers.md is killed under load")

// inTry is set in the environment of the test that runs among the machines of the page.
const inTry = "GOZZARD_TRY"

// TestTrySeveralServers runs the commands of docs/try-several-servers.md. Before the commands that remove everything, this
// test runs again on one of the machines of the page: it operates the fleet through each server and through the load
// balancer, kills one part after the other, and starts each again by the command of the page. The Chinese page has the same
// commands, so it is followed without that load.
func TestTrySeveralServers(t *testing.T) {
	if os.Getenv(inTry) != "" {
		newTry(t).run()
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a machine of its own")
	}
	if _, err := exec.LookPath("haproxy"); err != nil || !pgtest.Available() {
		t.Skip("needs PostgreSQL and haproxy: .ci/deps installs them")
	}
	t.Parallel() // it mostly waits

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	load := fmt.Sprintf("on me env %s=1 /stage/load -test.run '^%s$' -test.v -test.timeout 60m -try.rounds %d || "+
		"fail 'under load'", inTry, t.Name(), *tryRounds)
	limit := time.Duration(4+5**tryRounds) * time.Minute
	t.Run("English", func(t *testing.T) {
		t.Parallel()
		trySeveralServers(load).run(t, limit, map[string]string{"load": self})
	})
	t.Run("Chinese", func(t *testing.T) {
		t.Parallel()
		trySeveralServers("").inChinese().run(t, limit, nil)
	})
}
