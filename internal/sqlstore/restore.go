package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

var _ enrol.RestoreStore = (*Store)(nil)

// restoreGap is how far the numbers of a restored record jump: further than any server gets after a backup. Numbers
// are the order of intents, and agents refuse what is older than what they did last. It leaves room for thousands
// of restores below 2^53, the last number that every reader of JSON knows.
const restoreGap = 1 << 40

// jobGap is the same for jobs, whose numbers order nothing: callers that remember one of later are not shown
// another. GSEKit's clients keep them in 32 bits.
const jobGap = 1 << 24

// MarkRestored makes a record that was just taken out of a backup fit to be served. What the fleet did after the
// backup was taken is not in it, so nothing that was under way then may be sent, hosts and their journals are met
// as for the first time, and hosts wait for an admin, who alone may know which of them were put out since.
func (s *Store) MarkRestored(ctx context.Context, taken, now time.Time) (err error) {
	defer s.timed("mark_restored", &err)()
	reason := "the record was restored from a backup of " + taken.UTC().Format(time.RFC3339)
	return s.w.submit(ctx, &job{op: "a restore", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		for _, q := range []struct {
			text string
			args []any
		}{
			{`UPDATE counters SET value = value + $1 WHERE name = 'number'`, []any{int64(restoreGap)}},
			{`UPDATE counters SET value = value + $1 WHERE name IN ('job', 'job_task')`, []any{int64(jobGap)}},
			{`UPDATE counters SET value = $1 WHERE name = 'restored'`, []any{millis(taken)}},
			// Session 0 is before every journal: an operation is what the host's journal says of it, and where that
			// says nothing, interrupted.
			{`UPDATE attempts SET state = $1, session = 0 WHERE state < 4`, []any{int64(gozzard.AttemptDispatched)}},
			{`UPDATE hosts SET session = 0`, nil},
			{`UPDATE host_journals SET journal_id = $1, lsn = 0, since = 0, laid = 0`, []any{journalID([16]byte{})}},
			// A job goes on by itself and would repeat the waves that it did after the backup.
			{`UPDATE job_tasks SET state = 'failed', reason = 'internal', message = $1, ended = $2 WHERE state IN ('pending', 'running')
				AND job IN (SELECT id FROM jobs WHERE state IN ('pending', 'running'))`, []any{"whether this was done is not known: " + reason, millis(now)}},
			{`UPDATE jobs SET state = 'failed', reason = 'internal', message = $1, ended = $2 WHERE state IN ('pending', 'running')`, []any{reason, millis(now)}},
			{`UPDATE enrol_agents SET restored = $1`, []any{millis(taken)}},
			{`UPDATE enrol_agents SET state = $1, reason = $2, changed = $3 WHERE state = $4`,
				[]any{string(enrol.StateRestored), reason, millis(now), string(enrol.StateActive)}},
			{`UPDATE enrol_tokens SET revoked = $1`, []any{true}}, // used up since, perhaps
			{`DELETE FROM user_tokens WHERE session = $1`, []any{true}},
		} {
			if _, err := c.change(ctx, q.text, q.args...); err != nil {
				return fmt.Errorf("%w (%s)", err, q.text)
			}
		}

		n, err := draw(ctx, c)
		if err != nil {
			return err
		}

		return insertAudit(ctx, c, &gozzard.AuditRow{Seq: n, At: now,
			Caller: gozzard.Caller{App: "gozzard", User: "backup restore"},
			Act:    "restore:" + taken.UTC().Format(time.RFC3339)})
	}})
}

const selectWaiting = `SELECT (SELECT COUNT(*) FROM enrol_agents WHERE state = 'restored') +
	(SELECT COUNT(*) FROM hosts h WHERE NOT EXISTS (SELECT 1 FROM enrol_agents e WHERE e.agent_id = h.agent_id))`

// RestoredFrom implements enrol.RestoreStore.
func (s *Store) RestoredFrom(ctx context.Context) (from time.Time, waiting int, err error) {
	defer s.timed("restored", &err)()
	err = s.read.db.QueryRowContext(ctx, `SELECT value, (`+selectWaiting+
		`) FROM counters WHERE name = 'restored'`).Scan((*stamp)(&from), &waiting)
	if from.IsZero() {
		waiting = 0
	}
	return from, waiting, s.readError("what was restored", err)
}

// ConfirmRestore implements enrol.RestoreStore.
func (s *Store) ConfirmRestore(ctx context.Context, waiting int, act enrol.AuditEntry) (list []enrol.AgentRecord,
	err error) {
	defer s.timed("confirm_restore", &err)()

	err = s.w.submit(ctx, &job{op: "the confirmation of a restore", rows: 1,
		run: func(ctx context.Context, c *conn) error {
			list = list[:0]
			var have int
			if _, err := c.one(ctx, selectWaiting, nil, &have); err != nil {
				return err
			}
			if have != waiting {
				return gozzard.Errorf(gozzard.ErrConflict, "%d host(s) wait to be let in, not %d: look at them again",
					have, waiting)
			}

			err := c.each(ctx, `SELECT `+memberColumns+` FROM enrol_agents WHERE state = 'restored' ORDER BY agent_id`+
				c.d.forUpdate, nil, func(r *sql.Rows) error {
				a, err := scanMember(r.Scan)
				a.State, a.Reason, a.Changed = enrol.StateActive, "", act.At
				list = append(list, a)
				return err
			})

			if err != nil {
				return err
			}
			if _, err := c.change(ctx,
				`UPDATE enrol_agents SET state = $1, reason = '', changed = $2 WHERE state = 'restored'`,
				string(enrol.StateActive), millis(act.At)); err != nil {
				return err
			}

			if _, err := c.change(ctx, `UPDATE counters SET value = 0 WHERE name = 'restored'`); err != nil {
				return err
			}

			n, err := draw(ctx, c)
			if err != nil {
				return err
			}

			return insertAudit(ctx, c, &gozzard.AuditRow{Seq: n, At: act.At, Caller: act.Caller, Act: act.What,
				Targets: waiting})
		}})

	return list, err
}
