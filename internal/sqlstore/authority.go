package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

// ShownAuthorities implements enrol.Store.
func (s *Store) ShownAuthorities(ctx context.Context) (shown map[gozzard.AgentID]string, err error) {
	defer s.timed("shown_authorities", &err)()
	shown = map[gozzard.AgentID]string{}
	rows, err := s.read.db.QueryContext(ctx, `SELECT agent_id, authority FROM member_authorities`)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var agent gozzard.AgentID
		var pin string
		err := r.Scan(&agent, &pin)
		shown[agent] = pin
		return err
	})
	return shown, s.readError("the authorities of agents", err)
}

// ShowAuthorities implements enrol.Store.
func (s *Store) ShowAuthorities(ctx context.Context, shown map[gozzard.AgentID]string) (err error) {
	defer s.timed("show_authorities", &err)()
	return s.w.submit(ctx, &job{op: "the authorities of agents", rows: len(shown),
		run: func(ctx context.Context, c *conn) error {
			for agent, pin := range shown {
				_, err := c.change(ctx, `INSERT INTO member_authorities (agent_id, authority) VALUES ($1, $2)
					ON CONFLICT (agent_id) DO UPDATE SET authority = excluded.authority`, text(string(agent)), text(pin))
				if err != nil {
					return err
				}
			}
			return nil
		}})
}

// NoteAct implements enrol.Store.
func (s *Store) NoteAct(ctx context.Context, audit enrol.AuditEntry) (err error) {
	defer s.timed("note_act", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "an audit row", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		return auditEnrolment(ctx, c, row, nil)
	}})
}
