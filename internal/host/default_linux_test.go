package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// TE18: a command without an account runs as the default account of the moment, and not at all without one, also with an agent
// of root and for a definition that an earlier version recorded.
func TestTE18CommandWithoutAnAccount(t *testing.T) {
	needsRoot(t)
	account := ""
	f := newHost(t, func(o *host.Options) { o.Unnamed = func() string { return account } })
	s := f.spec("x")
	if s.Identity.User = ""; s.Identity.SetupPath == "" {
		s.Identity.SetupPath = f.dir
	}

	res, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: "id -un", Timeout: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "names no account") {
		t.Errorf("without a default account it ran: %+v, %v", res, err)
	}
	for _, account = range []string{"nobody", "root"} {
		if res := f.run(f.key("a"), s, false, "id -un"); strings.TrimSpace(res.Output) != account {
			t.Errorf("ran as %s, not %s", res.Output, account)
		}
	}
}
