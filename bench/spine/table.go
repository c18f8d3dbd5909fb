//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/test/sim"
)

// tableServer is the peer of the live index: the same rows in SQLite, served in pages over HTTP as most programs would
// do it.
type tableServer struct {
	db     *sql.DB
	server *http.Server
	done   chan error
	total  int
}

// row is a row of sync_proc_status.
type row struct {
	Meta struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Labels    map[string]string `json:"labels"`
	} `json:"meta"`
	Host struct {
		host
		Supplier int `json:"bk_supplier_id"`
	} `json:"host"`
	Agent      string  `json:"bk_agent_id"`
	Flag       int     `json:"flag"`
	Status     int     `json:"status"`
	IsAuto     bool    `json:"isauto"`
	Message    string  `json:"message"`
	PID        int     `json:"pid"`
	Version    string  `json:"version"`
	Registered int64   `json:"register_time"`
	Started    int64   `json:"last_start_time"`
	Reported   int64   `json:"report_time"`
	CPU        float64 `json:"cpu_usage"`
	Mem        float64 `json:"mem_usage"`
	FD         int     `json:"fd"`
	Disk       int64   `json:"disk"`
	Net        int64   `json:"net"`
}

const columns = `namespace, agent, name, labels, cloud, ip, flag, status, isauto, message, pid, version, registered, started, reported, cpu, mem, fd, disk, net`

func (t *tableServer) close() {
	if t.server != nil {
		_ = t.server.Close() // the program ends now
		<-t.done
	}
	if t.db != nil {
		_ = t.db.Close()
	}
}

func (t *tableServer) carryOut(o order) (answer, error) {
	if o.Do != "serve" {
		return answer{}, fmt.Errorf("cannot do %q", o.Do)
	}

	var err error
	if t.db, err = sql.Open("sqlite", "file:"+filepath.Join(o.Addr, "table.db")+
		"?_pragma=journal_mode(WAL)&_pragma=cache_size(-200000)"); err != nil {
		return answer{}, err
	}

	t.total = o.N
	if err := t.fill(o.N); err != nil {
		return answer{}, fmt.Errorf("cannot fill the table: %w", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return answer{}, err
	}

	t.server = &http.Server{Handler: http.HandlerFunc(t.serve), ReadHeaderTimeout: patience}
	t.done = make(chan error, 1)
	go func() { t.done <- t.server.Serve(l) }()
	return answer{Addr: "http://" + l.Addr().String()}, nil
}

// fill makes rows like those of the fleet: a hundred names on each host.
func (t *tableServer) fill(n int) (err error) {
	tx, err := t.db.Begin()
	if err != nil {
		return err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()

	_, err = tx.Exec(`CREATE TABLE status (namespace TEXT, agent TEXT, name TEXT, labels TEXT, cloud INTEGER, ip TEXT, flag INTEGER, status INTEGER,
		isauto INTEGER, message TEXT, pid INTEGER, version TEXT, registered INTEGER, started INTEGER, reported INTEGER, cpu REAL, mem REAL, fd INTEGER,
		disk INTEGER, net INTEGER, PRIMARY KEY (namespace, agent, name)) WITHOUT ROWID`)
	if err != nil {
		return err
	}

	st, err := tx.Prepare(`INSERT INTO status (` + columns +
		`) VALUES (?, ?, ?, ?, 0, ?, 2, 2, 0, '', -1, '', ?, 0, ?, 0, 0, 0, 0, 0)`)
	if err != nil {
		return err
	}

	now := time.Now().Unix()
	for i := range n {
		name := fmt.Sprintf("worker-%03d", i%100)
		_, err := st.Exec(namespace, fmt.Sprintf("sim-%05d", i/100), name, `{"proc_name":"`+name+`"}`,
			sim.Addr(0, i/100).IP.String(), now, now)
		if err != nil {
			return err
		}
	}

	return tx.Commit()
}

func (t *tableServer) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Meta struct{ Namespace string }
		Page struct{ Start, Limit int }
	}
	err := json.NewDecoder(r.Body).Decode(&q)
	var rows []row

	if err == nil {
		rows, err = t.page(r.Context(), q.Meta.Namespace, q.Page.Start, q.Page.Limit)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // the caller notices a truncated answer
		"result": true, "code": 0, "message": "success", "data": map[string]any{"count": t.total, "proc_infos": rows},
	})
}

func (t *tableServer) page(ctx context.Context, namespace string, start, limit int) (list []row, err error) {
	rows, err := t.db.QueryContext(ctx, `SELECT `+columns+
		` FROM status WHERE namespace = ? ORDER BY namespace, agent, name LIMIT ? OFFSET ?`,
		namespace, limit, start)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, rows.Close()) }()

	for rows.Next() {
		var r row
		var labels []byte
		err := rows.Scan(&r.Meta.Namespace, &r.Agent, &r.Meta.Name, &labels, &r.Host.Cloud, &r.Host.IP, &r.Flag,
			&r.Status, &r.IsAuto, &r.Message, &r.PID,
			&r.Version, &r.Registered, &r.Started, &r.Reported, &r.CPU, &r.Mem, &r.FD, &r.Disk, &r.Net)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(labels, &r.Meta.Labels); err != nil {
			return nil, err
		}
		list = append(list, r)
	}

	return list, rows.Err()
}
