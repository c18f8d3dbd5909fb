//go:build linux

package soak_test

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of the record

	"github.com/gozzard/gozzard"
)

// attempt is one operation on one daemon, as the server recorded it.
type attempt struct {
	daemon  *daemon
	op      string
	task    string
	seq     int64
	action  string
	state   gozzard.AttemptState
	outcome gozzard.Outcome
	key     string // of the result
	span           // from its acceptance until the caller saw its verdict
}

// readRecord lists the attempts of all tasks in the order of their generations. The record is read directly, because
// only there the ids of operations stand beside their verdicts.
func (s *soak) readRecord() (list []*attempt, tasks map[string]bool) {
	path := filepath.Join(s.server.Data, "gozzard.db")
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT t.seq, t.task_id, t.accepted_at, i.namespace, i.name, i.action, a.op_id, a.ip,
		a.result_key, a.state, a.outcome FROM attempts a JOIN tasks t ON t.seq = a.task_seq
		JOIN items i ON i.task_seq = a.task_seq AND i.item = a.item ORDER BY t.seq, a.idx`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()

	tasks = map[string]bool{}
	for rows.Next() {
		var a attempt
		var at int64
		var space, name, ip, outcome string
		var action uint8
		err := rows.Scan(&a.seq, &a.task, &at, &space, &name, &action, &a.op, &ip, &a.key, &a.state, &outcome)
		if err != nil {
			s.t.Fatal(err)
		}
		tasks[taskNumber(a.task)] = true
		a.action, a.from = gozzard.Action(action).String(), time.UnixMilli(at)
		if outcome != "" {
			if err := json.Unmarshal([]byte(outcome), &a.outcome); err != nil {
				s.t.Fatalf("outcome %q: %v", outcome, err)
			}
		}
		if a.daemon = s.daemonOf(space, name, ip, a.key); a.daemon != nil {
			list = append(list, &a)
		}
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}

	return list, tasks
}

// taskNumber is the part of a task id that all doors have.
func taskNumber(id string) string { return id[strings.LastIndexByte(id, ':')+1:] }

// daemonOf finds the daemon of an attempt. Job makes the names of its processes, but its result keys have the folder.
func (s *soak) daemonOf(space, name, ip, key string) *daemon {
	if space == jobSpace {
		dir, _, _ := strings.Cut(key, "/goosed:")
		d := s.byDir[dir]
		if d != nil {
			d.process = name
		}
		return d
	}
	for _, d := range s.all {
		if d.space == space && d.process == name && address(d.host) == ip {
			return d
		}
	}
	return nil
}
