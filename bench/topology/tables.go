//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gozzard/gozzard/internal/topology"
)

// schema is a good way to store the processes for these queries: everything that is queried or shown is in one row, so
// that only the instances need a join. There is an index for every filter that narrows enough, in the order of ids
// where a page follows.
const schema = `
CREATE TABLE process (
	biz int NOT NULL, id int NOT NULL, env smallint NOT NULL, set_id int NOT NULL, set_name text NOT NULL, module_id int NOT NULL, module_name text NOT NULL,
	service_template int NOT NULL, service_id int NOT NULL, service_name text NOT NULL, cloud int NOT NULL, cloud_name text NOT NULL, ip text NOT NULL,
	agent text NOT NULL, alias text NOT NULL, template int NOT NULL, priority int NOT NULL, state smallint NOT NULL, hosted boolean NOT NULL
) WITH (fillfactor = 90);
CREATE TABLE instance (
	biz int NOT NULL, process int NOT NULL, local int NOT NULL, inst int NOT NULL, state smallint NOT NULL, hosted boolean NOT NULL
) WITH (fillfactor = 90);`

const indexes = `
ALTER TABLE process ADD PRIMARY KEY (biz, id);
ALTER TABLE instance ADD PRIMARY KEY (biz, process, local);
CREATE INDEX ON process (biz, env, id);
CREATE INDEX ON process (biz, env, state, id);
CREATE INDEX ON process (biz, set_id, id);
CREATE INDEX ON process (biz, module_id, id);
CREATE INDEX ON process (biz, service_id);
CREATE INDEX ON process (biz, alias, id);
CREATE INDEX ON process (biz, ip);
CREATE INDEX ON process (biz, env, set_name, module_name, alias, id);
`

var columns = []string{
	"biz", "id", "env", "set_id", "set_name", "module_id", "module_name", "service_template", "service_id",
	"service_name", "cloud", "cloud_name", "ip", "agent",
	"alias", "template", "priority", "state", "hosted",
}

const columnList = `biz, id, env, set_id, set_name, module_id, module_name, service_template, service_id, service_name, cloud, cloud_name, ip, agent, alias, ` +
	`template, priority, state, hosted`

// fill puts a business into new tables.
func (p *postgres) fill(ctx context.Context, b *topology.Business, numbers []topology.Numbers) error {
	if _, err := p.conn.Exec(ctx, "DROP TABLE IF EXISTS process, instance;"+schema); err != nil {
		return fmt.Errorf("cannot make tables: %w", err)
	}

	clouds := map[int]string{}
	for _, c := range b.Clouds {
		clouds[c.ID] = c.Name
	}

	list := placesOf(b)
	rows := pgx.CopyFromSlice(len(list), func(i int) ([]any, error) {
		l := &list[i]
		h := &l.service.Host
		state, hosted := statusOf(l.process.ID)
		return []any{
			b.ID, l.process.ID, int(l.set.Env), l.set.ID, l.set.Name, l.module.ID, l.module.Name,
			l.module.ServiceTemplate, l.service.ID, l.service.Name, h.Cloud,
			clouds[h.Cloud], h.IP.String(), string(h.Agent), l.process.Name, l.process.Template, l.process.Priority,
			int(state), hosted,
		}, nil
	})

	if _, err := p.conn.CopyFrom(ctx, pgx.Identifier{"process"}, columns, rows); err != nil {
		return fmt.Errorf("cannot copy processes: %w", err)
	}

	instances := pgx.CopyFromSlice(len(numbers), func(i int) ([]any, error) {
		n := &numbers[i]
		state, hosted := statusOf(n.Process)
		return []any{b.ID, n.Process, 1, n.Inst(1), int(state), hosted}, nil
	})

	if _, err := p.conn.CopyFrom(ctx, pgx.Identifier{"instance"},
		[]string{"biz", "process", "local", "inst", "state", "hosted"}, instances); err != nil {
		return fmt.Errorf("cannot copy instances: %w", err)
	}

	if _, err := p.conn.Exec(ctx, indexes); err != nil {
		return fmt.Errorf("cannot make indexes: %w", err)
	}

	for _, t := range []string{"process", "instance"} {
		if _, err := p.conn.Exec(ctx, "VACUUM (ANALYZE) "+t); err != nil {
			return fmt.Errorf("cannot vacuum: %w", err)
		}
	}

	return nil
}

// bytes is the size of the tables and their indexes.
func (p *postgres) bytes(ctx context.Context) (n int64, err error) {
	err = p.conn.QueryRow(ctx, "SELECT pg_total_relation_size('process') + pg_total_relation_size('instance')").Scan(&n)
	return n, err
}

// row is a process as an answer shows it.
type row struct {
	Biz, ID                      int
	Env                          int
	Set                          int
	SetName                      string
	Module                       int
	ModuleName                   string
	ServiceTemplate, Service     int
	ServiceName                  string
	Cloud                        int
	CloudName, IP, Agent, Alias  string
	Template, Priority, RunState int
	Hosted                       bool
	Instances                    []instance
}

type instance struct {
	Local, Inst, State int
	Hosted             bool
}

// find queries a page and its count in one round trip, then the instances of the page.
func (p *postgres) find(ctx context.Context, where string, args []any, start, limit int) (total int, rows []*row,
	err error) {
	var batch pgx.Batch
	batch.Queue("SELECT count(*) FROM process WHERE "+where,
		args...).QueryRow(func(r pgx.Row) error { return r.Scan(&total) })

	page := fmt.Sprintf("SELECT %s FROM process WHERE %s ORDER BY biz, id LIMIT $%d OFFSET $%d", columnList, where,
		len(args)+1, len(args)+2)
	batch.Queue(page, append(append([]any{}, args...), limit, start)...).Query(func(r pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(r, scanRow)
		return err
	})

	if err := p.conn.SendBatch(ctx, &batch).Close(); err != nil {
		return 0, nil, err
	}

	ids, byID := make([]int, len(rows)), make(map[int]*row, len(rows))
	for i, r := range rows {
		ids[i], byID[r.ID] = r.ID, r
	}

	found, err := p.conn.Query(ctx,
		"SELECT process, local, inst, state, hosted FROM instance WHERE biz = $1 AND process = ANY($2)", biz, ids)
	if err != nil {
		return 0, nil, err
	}

	var id int
	var in instance
	_, err = pgx.ForEachRow(found, []any{&id, &in.Local, &in.Inst, &in.State, &in.Hosted}, func() error {
		byID[id].Instances = append(byID[id].Instances, in)
		return nil
	})

	return total, rows, err
}

func scanRow(r pgx.CollectableRow) (*row, error) {
	v := new(row)
	return v, r.Scan(&v.Biz, &v.ID, &v.Env, &v.Set, &v.SetName, &v.Module, &v.ModuleName, &v.ServiceTemplate,
		&v.Service, &v.ServiceName, &v.Cloud, &v.CloudName,
		&v.IP, &v.Agent, &v.Alias, &v.Template, &v.Priority, &v.RunState, &v.Hosted)
}

// report writes the states of one host's processes, as its agent would report them at every change.
func (p *postgres) report(ctx context.Context, ip string, ids []int, state int) error {
	return pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE process SET state = $3 WHERE biz = $1 AND ip = $2", biz, ip,
			state); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE instance SET state = $3 WHERE biz = $1 AND process = ANY($2)", biz, ids, state)
		return err
	})
}
