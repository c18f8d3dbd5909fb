//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/client"
)

// manyTargets is the size of a large task.
const manyTargets = 50_000

// fanned is what an operation on each host costs.
type fanned struct {
	targets               int
	accepted, whole, read time.Duration // medians; until all verdicts were there, and until another server had shown all of them
	cpu                   spent         // for each operation
}

// acceptance compares how a large task is accepted with the bare transaction.
type acceptance struct {
	targets    int
	ours, bare time.Duration // medians
	cpu        spent         // until the last one was accepted
}

// measureFan operates on one process of every host, through each server in turn.
func (b *bench) measureFan(ctx context.Context) error {
	if _, _, err := b.reload(ctx, 0, 1); err != nil { // makes what is made once
		return err
	}

	var accepted, whole, read []time.Duration
	f := &b.m.fan
	f.targets = b.agents
	err := around(b.servers, "fanout", func() error {
		s, _, err := b.during(func() error {
			for round := range b.rounds {
				began := time.Now()
				task, took, err := b.reload(ctx, round, 1)
				if err != nil {
					return err
				}
				whole, accepted = append(whole, time.Since(began)), append(accepted, took)
				if err := b.readAll(ctx, b.servers[(round+1)%servers], task, b.agents); err != nil {
					return err
				}
				read = append(read, time.Since(began))
			}
			return nil
		})
		f.cpu = s.per(float64(b.rounds * f.targets))
		return err
	})
	f.accepted, f.whole, f.read = middle(accepted), middle(whole), middle(read)
	b.say("accepted after %s, all verdicts after %s, read at another server after %s", f.accepted, f.whole, f.read)
	return err
}

// reload reloads some processes on all hosts through a server, and waits for all verdicts.
func (b *bench) reload(ctx context.Context, through, names int) (task string, accepted time.Duration, err error) {
	s := b.servers[through%servers]
	task, accepted, err = s.Reload(ctx, b.keys(names), b.agents)
	if err != nil {
		return "", 0, err
	}
	return task, accepted, b.await(ctx, s, task, names*b.agents)
}

// await waits for all verdicts of a task. Operations that did not succeed are a fault of the run, which goes on.
func (b *bench) await(ctx context.Context, s *server, task string, targets int) error {
	err := s.AwaitTask(ctx, task, targets)
	var some *crowd.Incomplete
	if errors.As(err, &some) {
		b.say("%s: %v", task, some)
		b.res.AddFault("A task through server %d: %v. Its times are of a task that failed in part.", s.n, some)
		return nil
	}
	return err
}

// readAll reads all results of a task at a server, page by page.
func (b *bench) readAll(ctx context.Context, s *server, id string, targets int) error {
	seen := 0
	for query := fmt.Sprint("limit=", client.MaxPage); ; {
		var t client.Task
		if err := s.Get(ctx, "/api/v1/tasks/"+url.PathEscape(id)+"?"+query, &t); err != nil {
			return err
		}
		for i := range t.Attempts {
			if t.Attempts[i].Verdict == client.Running {
				return fmt.Errorf("server %d shows no verdict of %s", s.n, t.Attempts[i].Host.Agent)
			}
		}
		seen += len(t.Attempts)
		if t.Next == "" {
			break
		}
		query = fmt.Sprint("limit=", client.MaxPage, "&cursor=", t.Next)
	}
	if seen != targets {
		return fmt.Errorf("server %d shows %d results of %d", s.n, seen, targets)
	}
	return nil
}

// measureAccept measures how long a large task takes to be accepted, and the same rows in one transaction of bare
// PostgreSQL, in turn.
func (b *bench) measureAccept(ctx context.Context) error {
	names := min(b.processes, (manyTargets+b.agents-1)/b.agents)
	a := &b.m.accept
	a.targets = names * b.agents
	err := b.pg.exec(ctx, "CREATE TABLE bare_tasks (LIKE tasks INCLUDING ALL)", "CREATE TABLE bare_items (LIKE items INCLUDING ALL)",
		"CREATE TABLE bare_attempts (LIKE attempts INCLUDING ALL)")
	if err != nil {
		return err
	}

	var ours, bare []time.Duration
	for range b.rounds {
		task, accepted, err := b.accept(ctx, names)
		if err != nil {
			return err
		}
		ours = append(ours, accepted)
		took, err := b.bareAccept(ctx, task, a.targets)
		if err != nil {
			return fmt.Errorf("the same in bare PostgreSQL: %w", err)
		}
		bare = append(bare, took)
	}
	a.ours, a.bare = middle(ours), middle(bare)
	b.say("%d targets accepted after %s, bare transaction %s", a.targets, a.ours, a.bare)
	if err := b.pg.exec(ctx, "DROP TABLE bare_tasks", "DROP TABLE bare_items", "DROP TABLE bare_attempts", "VACUUM ANALYZE"); err != nil {
		return err
	}
	return b.measureSize(ctx)
}

// measureSize reads how large the record is.
func (b *bench) measureSize(ctx context.Context) error {
	var all, attempts, rows float64
	err := b.pg.conn.QueryRow(ctx, `SELECT pg_database_size(current_database()), pg_total_relation_size('attempts'), (SELECT count(*) FROM attempts)`).
		Scan(&all, &attempts, &rows)
	if err != nil {
		return err
	}
	b.m.attemptBytes, b.m.hostBytes = attempts/max(rows, 1), (all-attempts)/float64(b.listed)
	return nil
}

// accept begins a task through the first server, with a profile until it is accepted, and waits for all verdicts.
func (b *bench) accept(ctx context.Context, names int) (task string, took time.Duration, err error) {
	s := b.servers[0]
	err = around(b.servers[:1], "accept", func() error {
		b.m.accept.cpu, _, err = b.during(func() (err error) {
			task, took, err = s.Reload(ctx, b.keys(names), b.agents)
			return err
		})
		return err
	})
	if err != nil {
		return "", 0, err
	}
	return task, took, b.await(ctx, s, task, names*b.agents)
}

// bareAccept records the rows of a task once more in tables of the same form: in one transaction, by COPY.
func (b *bench) bareAccept(ctx context.Context, task string, targets int) (took time.Duration, err error) {
	seq, ok := gozzard.TaskID(task[len("GSETASK:"):]).Seq()
	if !ok {
		return 0, errors.New("the task has no number")
	}
	columns, rows, err := b.attemptRows(ctx, int64(seq))
	if err != nil {
		return 0, err
	}
	if len(rows) != targets {
		return 0, fmt.Errorf("the task has %d rows and not %d", len(rows), targets)
	}
	if err := b.pg.exec(ctx, "TRUNCATE bare_tasks, bare_items, bare_attempts"); err != nil {
		return 0, err
	}

	began := time.Now()
	tx, err := b.pg.conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // it is committed
	for _, table := range []string{"tasks", "items"} {
		column := map[string]string{"tasks": "seq", "items": "task_seq"}[table]
		if _, err := tx.Exec(ctx, "INSERT INTO bare_"+table+" SELECT * FROM "+table+" WHERE "+column+" = $1", int64(seq)); err != nil {
			return 0, err
		}
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"bare_attempts"}, columns, pgx.CopyFromRows(rows)); err != nil {
		return 0, err
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// attemptRows reads the rows of a task as they were when it was accepted: without verdicts.
func (b *bench) attemptRows(ctx context.Context, seq int64) (columns []string, list [][]any, err error) {
	rows, err := b.pg.conn.Query(ctx, "SELECT * FROM attempts WHERE task_seq = $1", seq)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, nil, err
		}
		for i, name := range columns {
			switch name {
			case "state":
				values[i] = int16(0)
			case "outcome":
				values[i] = ""
			}
		}
		list = append(list, values)
	}
	return columns, list, rows.Err()
}
