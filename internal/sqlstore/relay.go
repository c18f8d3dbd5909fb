package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

var _ enrol.RelayStore = (*Store)(nil)

const relayColumns = `id, name, areas, state, digest, created, expires, created_by, serial, previous, not_after, agents, api,
	server, hosts, seen`

// AddRelay implements enrol.RelayStore.
func (s *Store) AddRelay(ctx context.Context, r enrol.RelayRecord, audit enrol.AuditEntry) (err error) {
	defer s.timed("add_relay", &err)()
	areas, err := json.Marshal(r.Areas)
	if err != nil {
		return fmt.Errorf("cannot encode the cloud areas of a relay: %w", err)
	}

	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "a relay", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `INSERT INTO relays (`+relayColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			text(r.ID), text(r.Name), string(areas), string(r.State), r.Digest[:], millis(r.Created), millis(r.Expires),
			text(r.CreatedBy), r.Serial, r.Previous, millis(r.NotAfter), text(r.Agents), text(r.API), "", 0, 0)
		if err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindRelays); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}

func scanRelay(scan func(...any) error, more ...any) (r enrol.RelayRecord, err error) {
	var digest []byte
	var areas string
	into := []any{&r.ID, &r.Name, &areas, &r.State, &digest, (*stamp)(&r.Created), (*stamp)(&r.Expires), &r.CreatedBy, &r.Serial,
		&r.Previous, (*stamp)(&r.NotAfter), &r.Agents, &r.API, &r.Server, &r.Hosts, (*stamp)(&r.Seen)}
	if err = scan(append(into, more...)...); err != nil {
		return r, err
	}
	if len(digest) != len(r.Digest) {
		return r, fmt.Errorf("relay %s has a digest of %d bytes", r.ID, len(digest))
	}
	copy(r.Digest[:], digest)
	if err := json.Unmarshal([]byte(areas), &r.Areas); err != nil {
		return r, fmt.Errorf("cloud areas of relay %s: %w", r.ID, err)
	}
	return r, nil
}

// ChangeRelay implements enrol.RelayStore.
func (s *Store) ChangeRelay(ctx context.Context, id string, change func(enrol.RelayRecord) (enrol.RelayRecord, error),
	audit enrol.AuditEntry) (out enrol.RelayRecord, err error) {
	defer s.timed("change_relay", &err)()
	row := enrolRow(ctx, audit)

	err = s.w.submit(ctx, &job{op: "a relay", rows: 1, run: func(ctx context.Context, c *conn) error {
		// Read and lock it.
		var known enrol.RelayRecord
		err := c.each(ctx, `SELECT `+relayColumns+` FROM relays WHERE id = $1`+c.d.forUpdate, []any{text(id)},
			func(r *sql.Rows) (err error) {
				known, err = scanRelay(r.Scan)
				return err
			})
		if err != nil {
			return err
		}
		if known.ID == "" {
			return errNoRelay(id)
		}

		// Change it.
		if out, err = change(known); err != nil {
			return err
		}
		_, err = c.change(ctx, `UPDATE relays SET state = $2, serial = $3, previous = $4, not_after = $5, agents = $6, api = $7
			WHERE id = $1`, text(out.ID), string(out.State), out.Serial, out.Previous, millis(out.NotAfter), text(out.Agents),
			text(out.API))
		if err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindRelays); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
	return out, err
}

func errNoRelay(id string) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no relay %.40q", id)
}

// SeeRelay implements enrol.RelayStore.
func (s *Store) SeeRelay(ctx context.Context, id, server string, hosts int) (err error) {
	defer s.timed("see_relay", &err)()
	return s.w.submit(ctx, &job{op: "a relay", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE relays SET server = $2, hosts = $3, seen = `+s.d.now+` WHERE id = $1`, text(id), text(server),
			hosts)
		return err
	}})
}

// RemoveRelay implements enrol.RelayStore.
func (s *Store) RemoveRelay(ctx context.Context, id string, audit enrol.AuditEntry) (err error) {
	defer s.timed("remove_relay", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "a relay", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `DELETE FROM relays WHERE id = $1`, text(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoRelay(id)
		}
		if err := c.bump(ctx, record.KindRelays); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}

// Relays implements enrol.RelayStore.
func (s *Store) Relays(ctx context.Context) (list []enrol.RelayRecord, err error) {
	defer s.timed("relays", &err)()
	err = s.read.each(ctx, `SELECT `+relayColumns+`, `+s.d.now+` - seen FROM relays ORDER BY name, id`, nil, func(r *sql.Rows) error {
		var ago int64
		v, err := scanRelay(r.Scan, &ago)
		v.Ago = max(0, time.Duration(ago)*time.Millisecond)
		list = append(list, v)
		return err
	})
	return list, s.readError("the relays", err)
}
