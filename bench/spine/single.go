//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver of the peer, the same as that of our database

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/internal/wire"
)

// Each caller operates this many processes in turn, so that no operation waits for an earlier one on the same process.
const procsPerCaller = 16

// measureSingle runs operations with one target each on one host, from several callers.
func (b *bench) measureSingle(ctx context.Context) (err error) {
	state, err := os.MkdirTemp(b.dir, "agent-")
	if err != nil {
		return err
	}

	f, err := b.startFleet(ctx, 1, state)
	if err != nil {
		return err
	}

	defer f.stop()
	down, up := messageSizes()
	bodies, err := singleBodies(b.size.callers, f.hosts)
	if err != nil {
		return err
	}
	if err := b.singles(ctx, f, bodies, procsPerCaller, &singleTimes{}); err != nil { // registers every process
		return err
	}

	bare, err := b.startBare(1, up)
	if err != nil {
		return err
	}

	defer bare.stop()
	db, err := b.openBare(ctx)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()
	one := &single{
		f: f, bare: bare, db: db, bodies: bodies, rounds: b.size.singles / b.size.callers / b.size.blocks,
		pair: order{Do: "pairs", N: b.size.callers, Down: down},
	}
	for block := range b.size.blocks {
		b.say("one host: block %d of %d, %d operations from %d callers, then bare SQLite and bare NATS", block+1,
			b.size.blocks, one.rounds*b.size.callers,
			b.size.callers)
		if err := b.singleBlock(ctx, one); err != nil {
			return err
		}
	}

	b.tellSingle(one)
	return nil
}

// single is the measurement of one host. Ours and the bare parts alternate.
type single struct {
	f      *testFleet
	bare   *bareFleet
	db     *sql.DB
	bodies [][][]byte // of each caller
	rounds int        // of each caller in a block
	pair   order

	ours              singleTimes
	cpu, wall         time.Duration
	commits           time.Duration
	pairs             samples
	bareCPU, bareWall time.Duration
}

func (b *bench) singleBlock(ctx context.Context, s *single) error {
	cpu, wall, err := b.spent(s.f.server, "single", func() error { return b.singles(ctx, s.f, s.bodies, s.rounds, &s.ours) })
	if err != nil {
		return err
	}

	s.cpu, s.wall = s.cpu+cpu, s.wall+wall
	commits, err := bareCommits(ctx, s.db, len(s.bodies), s.rounds)
	if err != nil {
		return err
	}

	s.commits += commits
	s.pair.Rounds = s.rounds
	cpu, wall, err = child.Spent(s.bare.server.Process, func() error {
		w, err := s.bare.server.do(s.pair)
		s.pairs = append(s.pairs, w.Took...)
		return err
	})

	s.bareCPU, s.bareWall = s.bareCPU+cpu, s.bareWall+wall
	return err
}

func (b *bench) tellSingle(s *single) {
	n := len(s.ours.whole)
	t := b.res.Table(fmt.Sprintf("One host, one operation a task, %d callers, %d operations", len(s.bodies), n),
		"whole path, durable on server and agent", "bare part")
	t.Add("operations a second; bare: SQLite commits of one row, synchronous=FULL", perSecond(n, s.wall),
		perSecond(n, s.commits), ratio(s.commits, s.wall), "")
	t.Add("operations a second; bare: NATS request and reply", perSecond(n, s.wall), perSecond(n, s.bareWall),
		ratio(s.bareWall, s.wall), "")
	t.Add("accept answered, p50 / p99", s.ours.accepted.quantiles(), "", "", "")
	t.Add("accept to verdict read, p50 / p99", s.ours.settled.quantiles(), "", "", "p99 < 250 ms")
	t.Add("request to verdict read, p50 / p99; bare: NATS", s.ours.whole.quantiles(), s.pairs.quantiles(),
		ratio(s.ours.whole.at(0.5), s.pairs.at(0.5)), "")
	t.Add("server CPU per operation, two HTTP calls included; bare: NATS", each(s.cpu, n), each(s.bareCPU, n),
		ratio(s.cpu, s.bareCPU), fmt.Sprintf("≤ %s", span(goalSingle)))
	b.missSingle(s.cpu / time.Duration(max(n, 1)))
	b.res.Note("One host: the server's record and the agent's journal are both on the disk of the machine; each operation is fsynced at accept, on the " +
		"agent before and after its effect, and at its verdict. Callers POST operate_proc_v2, then wait with GET /api/v1/tasks/{id}?wait=30s.")
}

func singleBodies(callers int, hosts []host) ([][][]byte, error) {
	bodies := make([][][]byte, callers)
	for c := range bodies {
		for i := range procsPerCaller {
			body, err := request(fmt.Sprintf("c%02d-%02d", c, i), opReload, hosts)
			if err != nil {
				return nil, err
			}
			bodies[c] = append(bodies[c], body)
		}
	}
	return bodies, nil
}

type singleTimes struct{ accepted, settled, whole samples }

// singles runs a number of rounds for every caller. A verdict other than success is a fault.
func (b *bench) singles(ctx context.Context, f *testFleet, bodies [][][]byte, rounds int, t *singleTimes) error {
	var mu sync.Mutex
	bad := counts{}
	_, err := inParallel(len(bodies), rounds, func(c, round int) (time.Duration, error) {
		accepted, settled, n, err := f.operate(ctx, bodies[c][round%procsPerCaller])
		if err != nil {
			return 0, err
		}
		mu.Lock()
		defer mu.Unlock()
		t.accepted, t.settled, t.whole = append(t.accepted, accepted), append(t.settled, settled),
			append(t.whole, accepted+settled)
		bad.Failed += n.Failed
		bad.Running += n.Running
		return 0, nil
	})

	if bad.Failed+bad.Running > 0 {
		b.res.AddFault("one host: %d operations failed, %d never ended", bad.Failed, bad.Running)
	}

	return err
}

// openBare makes a table in a database with the settings of ours.
func (b *bench) openBare(ctx context.Context) (*sql.DB, error) {
	db, err := b.openDatabase("bare.db")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE bare (id INTEGER PRIMARY KEY, body BLOB)`); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openDatabase opens a database with the settings of ours.
func (b *bench) openDatabase(name string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.dir, name)+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer; more connections only wait for it by polling
	return db, nil
}

// bareCommits measures what disk and SQLite allow: each caller inserts one row and commits it, again and again.
func bareCommits(ctx context.Context, db *sql.DB, callers, rounds int) (_ time.Duration, err error) {
	st, err := db.PrepareContext(ctx, `INSERT INTO bare (body) VALUES (?)`)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	row := make([]byte, 200)
	began := time.Now()
	_, err = inParallel(callers, rounds, func(int, int) (time.Duration, error) {
		_, err := st.ExecContext(ctx, row)
		return 0, err
	})
	return time.Since(began), err
}

// messageSizes are the sizes of a command with one operation and of the report of its result.
func messageSizes() (down, up int) {
	spec := definition("fan")
	ref := gozzard.AttemptRef{Task: 12345, Index: 1234}
	cmd := gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandOperate, Session: 3,
		Ops: []gozzard.Op{{
			ID: gozzard.NewOpID(), Ref: ref, Gen: 12345, Action: gozzard.ActionReload,
			Key:    gozzard.Key{Namespace: namespace, Name: "fan"},
			Labels: map[string]string{"proc_name": "fan"}, Spec: gozzard.EncodeSpec(&spec),
		}}}
	report := gozzard.Report{
		Version: gozzard.ProtocolVersion, Kind: gozzard.ReportResults, Session: 3,
		Journal: gozzard.JournalPos{ID: gozzard.NewOpID(), LSN: 100000},
		Results: []gozzard.OpReport{{ID: gozzard.NewOpID(), Ref: ref, Phase: gozzard.PhaseDone,
			Outcome: gozzard.Outcome{Code: gozzard.CodeOK}}},
	}
	return len(wire.AppendCommand(nil, &cmd)), len(wire.AppendReport(nil, &report))
}

// ackSize is the size of the acknowledgement of one verdict.
func ackSize() int {
	return len(wire.AppendCommand(nil, &gozzard.Command{
		Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: 3,
		Acked: []gozzard.OpID{gozzard.NewOpID()},
	}))
}
