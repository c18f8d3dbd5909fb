//go:build linux

package faults_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/ledger"
	"github.com/gozzard/gozzard/test/pgtest"
)

// V17: PostgreSQL is lost under load and its synchronous standby takes over. A server does not start on the standby alone
// before that, and says why. It finds the promoted one by itself.
func TestV17PostgresFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	first := pgtest.Start(t, "on")
	first.Exec("postgres", "CREATE ROLE fleet LOGIN")
	first.Exec("postgres", "CREATE DATABASE fleet OWNER fleet TEMPLATE template0")
	second := first.Standby()
	first.Synchronous()

	s := ft.StartServer(t, "", "--record", fmt.Sprintf("postgres://fleet@/fleet?host=%s,%s", first.Dir, second.Dir))
	s.StartAgent(t, 1, "")
	s.Kill(syscall.SIGTERM)
	alone := ft.Start(t, "alone", nil, "server", "--data", s.Data, "--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:0",
		"--record", second.URLAs("fleet", "fleet"))
	<-alone.Done()
	mentions(t, alone.Output(), "the database accepts no changes: it is a standby")
	s.Again()
	s.AwaitReady()
	s.AwaitOnline(t, 1)

	// Fail over.
	l := ledger.New(t, s.API)
	stop := l.Load(6, 1, 2000**scale)
	time.Sleep(time.Second)
	first.End(syscall.SIGQUIT)
	time.Sleep(time.Second) // calls fail meanwhile
	second.Promote()
	f := &pgFleet{t: t, pg: second, Server: s}
	f.awaitService()
	time.Sleep(time.Second)
	stop()
	l.Afterwards(12, 1)
	l.Judge("V17 failover", ledger.Floor{OK: 20, Percent: 25})
}
