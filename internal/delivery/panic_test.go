package delivery_test

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/delivery"
)

// panicEnv is set in the environment of this test binary when it plays a server that panics.
const panicEnv = "GOZZARD_DELIVERY_PANIC"

// TestPanicUnderLockEndsProgram: a panic while the engine's lock is held ends the program, although net/http recovers
// panics of handlers. A server that continued would hang at the next operation.
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
	if want := "panic while shared state was locked: bad transition"; !strings.Contains(string(out), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// servePanic serves one request that panics in the middle of a change.
func servePanic(t *testing.T) {
	e := delivery.New(delivery.Options{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		e.Change(func(time.Time) { panic("bad transition") })
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
