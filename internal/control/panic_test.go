package control_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// panicEnv is set in the environment of this test binary when it plays a server that panics.
const panicEnv = "GOZZARD_CONTROL_PANIC"

// TestPanicUnderLockEndsProgram: an observer that panics while the plane's lock is held ends the program, though
// net/http recovers panics of handlers.
func TestPanicUnderLockEndsProgram(t *testing.T) {
	if os.Getenv(panicEnv) != "" {
		servePanic(t)
		return
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPanicUnderLockEndsProgram$")
	cmd.Env = append(os.Environ(), panicEnv+"=1")
	out, err := cmd.CombinedOutput()

	if ctx.Err() != nil {
		t.Fatalf("the program hangs:\n%s", out)
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Fatalf("got %v, want exit status 2:\n%s", err, out)
	}

	for _, want := range []string{"panic while shared state was locked: bad observer", "(*Plane).reserve"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// servePanic plays a server with a request that is over the quota, and an observer that panics when it hears of it.
func servePanic(t *testing.T) {
	r := newRigQuota(t, 1)
	r.onRefused = func() { panic("bad observer") }
	r.hello(me, 1, journalA)

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		op := &gozzard.Operation{Caller: caller, Door: "test"}
		for _, name := range []string{"p1", "p2"} {
			op.Items = append(op.Items, gozzard.Item{Action: gozzard.ActionStart,
				Key:  gozzard.Key{Namespace: "ns", Name: name},
				Spec: spec(60), Targets: []gozzard.Target{{Agent: me, ResultKey: name}}})
		}
		r.plane.Operate(req.Context(), op)
	}))

	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	res, err := http.Get(server.URL)
	if err == nil {
		res.Body.Close()
	}

	t.Logf("the server goes on: %v", err)
}
