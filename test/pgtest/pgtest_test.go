//go:build !windows

package pgtest_test

import (
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/test/pgtest"
)

// What was committed outlives a crash, and the server answers again.
func TestServer(t *testing.T) {
	s := pgtest.Start(t, "on")
	s.Exec("postgres", "CREATE TABLE kept (n INTEGER); INSERT INTO kept VALUES (7)")
	s.End(syscall.SIGQUIT)
	s.Again()
	if got := s.Exec("postgres", "SELECT n FROM kept"); got != "7" {
		t.Errorf("after a crash: %q", got)
	}
}
