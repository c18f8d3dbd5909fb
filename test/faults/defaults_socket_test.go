//go:build linux

package faults_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/agentsock"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// localSocket: by default the socket of an agent is for root and the agent's account. Its mode and its folder keep
// other accounts away. If both were opened by mistake, the agent itself rejects them.
func localSocket(t *testing.T, f *plainFleet) {
	path := filepath.Join(f.state, "agent.sock")
	ft.Until(t, time.Minute, f.agent.Output, func() bool { _, err := os.Lstat(path); return err == nil })
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode() != os.ModeSocket|0o600 || int(fi.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Fatalf("%v, %v", fi, err)
	}

	type state struct {
		PID     int              `json:"pid"`
		Policy  agentsock.Policy `json:"policy"`
		Refused uint64           `json:"refused"`
		Session struct {
			Open bool `json:"open"`
		} `json:"session"`
	}
	status := func() (st state) {
		t.Helper()
		if err := json.Unmarshal([]byte(f.gozzard(t, "agent", "status", "--data", f.state, "-o", "json")),
			&st); err != nil {
			t.Fatal(err)
		}
		return st
	}

	if st := status(); st.PID != f.agent.PID() || !st.Session.Open || st.Policy.AllowRoot || st.Refused != 0 {
		t.Errorf("%+v", st)
	}
	if os.Geteuid() != 0 {
		t.Skip("not root: there are no strangers")
	}

	stranger := ft.Account{UID: 54321, GID: 54321, Groups: []uint32{100}}
	ask := func(words string) {
		t.Helper()
		for _, verb := range []string{"status", "ps", "reconnect"} {
			if out, code := stranger.Gozzard(t, f.state, "agent", verb, "--socket",
				ft.Handed("agent.sock")); code != 4 || !strings.Contains(out, words) {
				t.Errorf("%s of a stranger: exit %d, %s", verb, code, out)
			}
		}
	}

	ask("run this as root")

	chmod := func(folder, socket os.FileMode) {
		t.Helper()
		for name, mode := range map[string]os.FileMode{f.state: folder, path: socket} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}

	chmod(0o711, 0o666)
	defer chmod(0o700, 0o600)
	ask("closed the connection without an answer")

	if st := status(); st.Refused != 3 {
		t.Errorf("%d were refused", st.Refused)
	}
}
