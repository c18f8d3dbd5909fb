package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

// RegisterServer records a server that starts. A server that an admin has drained stays so.
func (s *Store) RegisterServer(ctx context.Context, v record.Server) (err error) {
	defer s.timed("register_server", &err)()
	return s.w.submit(ctx, &job{op: "a server", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `INSERT INTO servers (id, name, url, address, agent_address, version, started, seen, agents, drained,
				relay_address, ahead, authority, seal)
			VALUES ($1, $2, $3, $4, $5, $6, `+s.d.now+`, `+s.d.now+`, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, url = excluded.url, address = excluded.address,
				agent_address = excluded.agent_address, relay_address = excluded.relay_address, ahead = excluded.ahead,
				authority = excluded.authority, seal = excluded.seal,
				version = excluded.version, started = excluded.started, seen = excluded.seen, agents = excluded.agents`,
			text(v.ID), text(v.Name), text(v.URL), text(v.Address), text(v.AgentAddress), text(v.Version), v.Agents, v.Drained,
			text(v.RelayAddress), s.d.clock.millis(), text(v.Authority), text(v.Seal))
		return err
	}})
}

// RefreshServer records that a server runs, and returns whether it is drained. The error is ErrNotFound if the server was
// removed because it was not seen for long: then it registers again.
func (s *Store) RefreshServer(ctx context.Context, id string, agents int) (drained bool, err error) {
	defer s.timed("refresh_server", &err)()
	err = s.w.submit(ctx, &job{op: "a server", rows: 1, run: func(ctx context.Context, c *conn) error {
		var seen int64
		before := s.o.Now()
		found, err := c.one(ctx, `UPDATE servers SET seen = `+s.d.now+`, agents = $2, ahead = $3 WHERE id = $1
			RETURNING drained, seen`, []any{text(id), agents, s.d.clock.millis()}, &drained, &seen)
		if err == nil && found {
			s.d.clock.compare(seen, before, s.o.Now())
		}
		if err == nil && !found {
			err = gozzard.Errorf(gozzard.ErrNotFound, "server %.80q is not recorded", id)
		}
		return err
	}})
	return drained, err
}

// DrainServer records that a server takes no agents, or that it does again. It rejects the drain of a server if no other
// one takes agents that was seen within alive. The transaction checks that, so two admins cannot drain the last two.
func (s *Store) DrainServer(ctx context.Context, id string, drained bool, alive time.Duration,
	audit enrol.AuditEntry) (err error) {
	defer s.timed("drain_server", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "the drain of a server", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		var was bool
		found, err := c.one(ctx, `SELECT drained FROM servers WHERE id = $1`, []any{text(id)}, &was)
		switch {
		case err != nil:
			return err
		case !found:
			return gozzard.Errorf(gozzard.ErrNotFound, "no server has the id %.80q: \"gozzard servers\" lists their ids", id)
		case was == drained:
			return nil
		}

		// Others must take its agents.
		others := 1
		if drained {
			_, err = c.one(ctx, `SELECT count(*) FROM servers WHERE id <> $1 AND NOT drained AND agent_address <> ''
				AND seen > `+s.d.now+` - $2`, []any{text(id), alive.Milliseconds()}, &others)
		}
		if err != nil {
			return err
		}
		if others == 0 {
			return gozzard.Errorf(gozzard.ErrConflict, "server %.80q cannot be drained: no other server that runs takes agents, so "+
				"its agents could go nowhere. Start another server, or undrain one", id)
		}

		if _, err := c.change(ctx, `UPDATE servers SET drained = $2 WHERE id = $1`, text(id), drained); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}

// Servers lists the servers by name.
func (s *Store) Servers(ctx context.Context) (list []record.Server, err error) {
	defer s.timed("servers", &err)()
	err = s.read.each(ctx, `SELECT id, name, url, address, agent_address, version, started, seen, agents, drained, relay_address,
		ahead, authority, seal, `+s.d.now+` - seen
		FROM servers ORDER BY name, id`, nil, func(r *sql.Rows) error {
		var v record.Server
		var started, seen, ahead, ago int64
		err := r.Scan(&v.ID, &v.Name, &v.URL, &v.Address, &v.AgentAddress, &v.Version, &started, &seen, &v.Agents, &v.Drained,
			&v.RelayAddress, &ahead, &v.Authority, &v.Seal, &ago)
		v.Started, v.Seen, v.Ago = fromMillis(started), fromMillis(seen), max(0, time.Duration(ago)*time.Millisecond)
		v.Ahead = time.Duration(ahead) * time.Millisecond
		list = append(list, v)
		return err
	})
	return list, s.readError("the servers", err)
}

// RemoveServers removes the servers that were not seen for a time, and returns how many.
func (s *Store) RemoveServers(ctx context.Context, absent time.Duration) (n int, err error) {
	defer s.timed("remove_servers", &err)()
	err = s.w.submit(ctx, &job{op: "the removal of servers", rows: 1, run: func(ctx context.Context, c *conn) error {
		removed, err := c.change(ctx, `DELETE FROM servers WHERE seen < `+s.d.now+` - $1`, absent.Milliseconds())
		n = int(removed)
		return err
	}})
	return n, err
}

// Versions returns the versions of all kinds that were ever changed.
func (s *Store) Versions(ctx context.Context) (versions map[record.Kind]int64, err error) {
	defer s.timed("versions", &err)()
	versions = map[record.Kind]int64{}
	err = s.read.each(ctx, `SELECT kind, n FROM versions`, nil, func(r *sql.Rows) error {
		var kind record.Kind
		var n int64
		err := r.Scan(&kind, &n)
		versions[kind] = n
		return err
	})
	return versions, s.readError("the versions", err)
}

// bump says in the transaction of a change that facts of a kind changed.
func (c *conn) bump(ctx context.Context, kind record.Kind) error {
	var n int64
	_, err := c.one(ctx, `INSERT INTO versions (kind, n) VALUES ($1, 1)
		ON CONFLICT (kind) DO UPDATE SET n = versions.n + 1 RETURNING n`, []any{string(kind)}, &n)
	if c.bumped == nil {
		c.bumped = map[record.Kind]int64{}
	}
	c.bumped[kind] = n
	return err
}

// takeBumped gives the versions that the last transaction made, and forgets them.
func (c *conn) takeBumped() map[record.Kind]int64 {
	b := c.bumped
	c.bumped = nil
	return b
}
