//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

const (
	mostNames  = 25                     // on each host in the largest task
	largePolls = 20                     // polls of a task that has all its verdicts
	pollEvery  = 100 * time.Millisecond // while it runs
)

// measureLarge operates on the registered processes with one task: ten on each host, and 25. It measures how long the task
// takes to be accepted, beside the same rows in bare SQLite, and what a caller costs that reads all of it ten times a second.
func (b *bench) measureLarge(ctx context.Context, f *testFleet) (err error) {
	db, err := b.openLarge(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	for _, names := range slices.Compact([]int{min(10, b.size.names), min(mostNames, b.size.names)}) {
		if err := b.largeTask(ctx, f, db, names); err != nil {
			return err
		}
	}
	return nil
}

// largeTask measures one task.
func (b *bench) largeTask(ctx context.Context, f *testFleet, db *sql.DB, names int) error {
	targets := names * len(f.hosts)
	b.say("one task with %d targets", targets)
	body, err := largeRequest(names, f.hosts)
	if err != nil {
		return err
	}
	bare, bareCPU, err := bareTask(ctx, db, targets)
	if err != nil {
		return err
	}

	// Accept it, and poll until it is final.
	var task struct {
		ID string `json:"task_id"`
	}
	var accepted time.Duration
	acceptCPU, _, err := b.spent(f.server, "accept", func() (err error) {
		accepted, err = f.ask(ctx, "operate_proc_multi", body, &task)
		return err
	})
	if err != nil {
		return err
	}
	p := poller{caller: f.caller, path: "/api/v1/tasks/" + url.PathEscape(task.ID)}
	running, polls := time.Now(), 0
	cpu, _, err := b.spent(f.server, "large", func() error {
		for ; ; polls++ {
			next := time.Now().Add(pollEvery)
			state, err := p.poll(ctx)
			if err != nil || state.Final {
				return err
			}
			if time.Since(running) > 2*time.Minute {
				return fmt.Errorf("%d of %d attempts have no verdict", state.Counts.Running, targets)
			}
			time.Sleep(time.Until(next))
		}
	})
	if err != nil {
		return err
	}
	settled := time.Since(running)

	t := b.res.Table(fmt.Sprintf("One task with %d targets on %d hosts, read whole ten times a second", targets, len(f.hosts)),
		"measured", "bare SQLite, the same rows in one transaction")
	t.Add("accepted", span(accepted), span(bare), ratio(accepted, bare), acceptGoal(targets))
	t.Add("server CPU until it was accepted", span(acceptCPU), span(bareCPU), ratio(acceptCPU, bareCPU), "")
	t.Add("all verdicts read", span(settled), "", "", "")
	b.missLarge(targets, accepted, bare, acceptCPU)
	t.Add(fmt.Sprintf("server CPU in all, per operation, with %d polls", polls+1), each(cpu, targets), "", "", "")
	if err := b.finalPolls(ctx, f, &p, t); err != nil {
		return err
	}
	return b.gsePolls(ctx, f, task.ID, targets, t)
}

// gsePolls measures polls of the same task at GSE's door.
func (b *bench) gsePolls(ctx context.Context, f *testFleet, task string, targets int, t *sheet.Table) error {
	body, err := json.Marshal(map[string]string{"task_id": task})
	if err != nil {
		return err
	}
	cpu, _, err := b.spent(f.server, "poll-gse", func() error {
		for range largePolls {
			var entries map[string]json.RawMessage
			if _, err := f.ask(ctx, "get_proc_operate_result", body, &entries); err != nil {
				return err
			}
			if len(entries) != targets {
				return fmt.Errorf("get_proc_operate_result has %d entries of %d", len(entries), targets)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.Add("server CPU per poll with get_proc_operate_result", each(cpu, largePolls), "", "", "")
	return nil
}

// finalPolls measures polls of a task that does not change any more.
func (b *bench) finalPolls(ctx context.Context, f *testFleet, p *poller, t *sheet.Table) error {
	for _, side := range []struct {
		name, profile string
		tag           bool
	}{
		{"server CPU per poll that reads all again", "poll", false},
		{"server CPU per poll with the ETag, answered with 304", "poll-304", true},
	} {
		p.useTag = side.tag
		cpu, _, err := b.spent(f.server, side.profile, func() error {
			for range largePolls {
				if _, err := p.poll(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		t.Add(side.name, each(cpu, largePolls), "", "", "")
	}
	return nil
}

// poller reads a task again and again.
type poller struct {
	*caller
	path   string
	tag    string // of the last answer
	useTag bool
	last   taskState
}

type taskState struct {
	Final  bool
	Counts counts
}

// poll reads the task.
func (p *poller) poll(ctx context.Context) (taskState, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+p.path, nil)
	if err != nil {
		return p.last, err
	}
	req.Header.Set("X-Bkapi-Authorization", p.auth)
	if p.useTag {
		req.Header.Set("If-None-Match", p.tag)
	}

	res, err := p.http.Do(req)
	if err != nil {
		return p.last, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil || res.StatusCode == http.StatusNotModified:
		return p.last, err
	case res.StatusCode != http.StatusOK:
		return p.last, fmt.Errorf("%s: HTTP %d %.300s", p.path, res.StatusCode, text)
	}
	p.tag = res.Header.Get("ETag")
	return p.last, json.Unmarshal(text, &p.last)
}

// largeRequest is the body of one call about several processes on all hosts.
func largeRequest(names int, hosts []host) ([]byte, error) {
	var list []json.RawMessage
	for i := range names {
		part, err := request(fmt.Sprintf("worker-%03d", i), opReload, hosts)
		if err != nil {
			return nil, err
		}
		list = append(list, part)
	}
	return json.Marshal(map[string]any{"proc_operate_req": list})
}

// openLarge makes a table with the columns of attempts in a database with the settings of ours.
func (b *bench) openLarge(ctx context.Context) (*sql.DB, error) {
	db, err := b.openDatabase("large.db")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE attempts (task_seq BIGINT, idx INTEGER, item INTEGER, op_id TEXT, agent_id TEXT,
		cloud INTEGER, ip TEXT, result_key TEXT, state INTEGER, session BIGINT, outcome TEXT, deadline BIGINT, expires BIGINT,
		PRIMARY KEY (task_seq, idx))`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// bareTask measures one transaction with a row for each target.
func bareTask(ctx context.Context, db *sql.DB, targets int) (took, cpu time.Duration, err error) {
	before, err := ownCPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	st, err := tx.PrepareContext(ctx, `INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return 0, 0, errors.Join(err, tx.Rollback())
	}
	for i := range targets {
		_, err := st.ExecContext(ctx, targets, i, i%25, fmt.Sprintf("%032x", i), fmt.Sprintf("%032x", i*7919), 0, "127.1.200.200",
			fmt.Sprintf("%d:bench:worker", i), 2, 3, "", 1_700_000_000_000, 1_700_000_000_000)
		if err != nil {
			return 0, 0, errors.Join(err, tx.Rollback())
		}
	}
	if err := errors.Join(st.Close(), tx.Commit()); err != nil {
		return 0, 0, err
	}

	took = time.Since(began)
	after, err := ownCPU()
	return took, after - before, err
}

// ownCPU is the CPU time of this program.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of this program: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
