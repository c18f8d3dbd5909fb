package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

var _ enrol.RestoreStore = (*Store)(nil)

// restoreGap is added to the number of the last task when a record is restored. It is more than any server uses up
// after a backup. Agents reject an operation with a lower number than their last one, so new tasks must have higher
// numbers than all tasks after the backup. The gap allows thousands of restores below 2^53, the largest integer that
// every JSON reader knows.
const restoreGap = 1 << 40

// jobGap is the same for jobs. Their numbers do not order anything, but a caller that remembers the number of a job
// after the backup must not get another job. GSEKit's clients store these numbers in 32 bits.
const jobGap = 1 << 24

// eventGap is the same for events, whose numbers follow the clock: it counts only when the clock was set back.
const eventGap = 1 << 32

// MarkRestored prepares a record that was just read from a backup. The record does not know what the fleet did after
// the backup was taken. So nothing that was under way is sent, hosts and their journals are treated as new, and hosts
// wait for an admin to let them in: only an admin can know which of them were banned since.
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
			// Readers of events go on behind the numbers that they have seen, and learn that some may be missing.
			{`UPDATE counters SET value = CASE WHEN value + $1 < $2 THEN $2 ELSE value + $1 END WHERE name = 'event'`,
				[]any{int64(eventGap), min(now.UnixMicro(), maxEventClock)}},
			{`UPDATE counters SET value = (SELECT value FROM counters WHERE name = 'event')
				WHERE name = 'events_removed'`, nil},
			{`UPDATE counters SET value = $1 WHERE name = 'restored'`, []any{millis(taken)}},
			{`UPDATE counters SET value = $1 WHERE name = 'restore_mark'`, []any{millis(now)}},
			// Session 0 is before every journal: the journal of the host decides what became of an operation. If it
			// does not know the operation, the operation is interrupted.
			{`UPDATE attempts SET state = $1, session = 0 WHERE state < 4`, []any{int64(gozzard.AttemptDispatched)}},
			{`UPDATE hosts SET session = 0`, nil},
			{`UPDATE host_journals SET journal_id = $1, lsn = 0, since = 0, laid = 0`, []any{journalID([16]byte{})}},
			// An open job would continue by itself and repeat the waves that it did after the backup.
			{`UPDATE job_tasks SET state = 'failed', reason = 'internal', message = $1, ended = $2
				WHERE state IN ('pending', 'running')
				AND job IN (SELECT id FROM jobs WHERE state IN ('pending', 'running'))`,
				[]any{"whether this was done is not known: " + reason, millis(now)}},
			{`UPDATE jobs SET state = 'failed', reason = 'internal', message = $1, ended = $2
				WHERE state IN ('pending', 'running')`, []any{reason, millis(now)}},
			{`UPDATE enrol_agents SET restored = $1`, []any{millis(taken)}},
			{`UPDATE enrol_agents SET state = $1, reason = $2, changed = $3 WHERE state = $4`,
				[]any{string(enrol.StateRestored), reason, millis(now), string(enrol.StateActive)}},
			// A token may have been used up since.
			{`UPDATE enrol_tokens SET revoked = $1`, []any{true}},
			{`DELETE FROM user_tokens WHERE session = $1`, []any{true}},
		} {
			if _, err := c.change(ctx, q.text, q.args...); err != nil {
				return fmt.Errorf("%w (%s)", err, q.text)
			}
		}

		return addAudit(ctx, c, gozzard.AuditRow{At: now, Caller: gozzard.Caller{App: "gozzard", User: "backup restore"},
			Act: "restore:" + taken.UTC().Format(time.RFC3339)})
	}})
}

// selectWaiting counts the hosts that wait until an admin confirms the restore.
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
	return from, waiting, s.readError("the state of the restore", err)
}

// ConfirmRestore implements enrol.RestoreStore.
func (s *Store) ConfirmRestore(ctx context.Context, waiting int,
	audit enrol.AuditEntry) (list []enrol.AgentRecord, err error) {
	defer s.timed("confirm_restore", &err)()
	row := enrolRow(ctx, audit)
	row.Targets = waiting

	err = s.w.submit(ctx, &job{op: "the confirmation of a restore", rows: 1,
		run: func(ctx context.Context, c *conn) error {
			// Reject the confirmation if another number of hosts waits than the admin has seen.
			list = list[:0]
			var have int
			if _, err := c.one(ctx, selectWaiting, nil, &have); err != nil {
				return err
			}
			if have != waiting {
				return gozzard.Errorf(gozzard.ErrConflict, "%d host(s) wait to be let in, not %d: look at them again",
					have, waiting)
			}

			// Let the hosts in.
			err := c.each(ctx, `SELECT `+memberColumns+` FROM enrol_agents WHERE state = 'restored' ORDER BY agent_id`+
				c.d.forUpdate, nil, func(r *sql.Rows) error {
				a, err := scanMember(r.Scan)
				a.State, a.Reason, a.Changed = enrol.StateActive, "", audit.At
				list = append(list, a)
				return err
			})
			if err != nil {
				return err
			}
			if _, err := c.change(ctx,
				`UPDATE enrol_agents SET state = $1, reason = '', changed = $2 WHERE state = 'restored'`,
				string(enrol.StateActive), millis(audit.At)); err != nil {
				return err
			}

			// End the state "restored" and record that in the audit.
			if _, err := c.change(ctx, `UPDATE counters SET value = 0 WHERE name = 'restored'`); err != nil {
				return err
			}

			if err := c.bump(ctx, record.KindEnrol); err != nil {
				return err
			}
			return addAudit(ctx, c, row)
		}})

	return list, err
}

// RestoreMark is when the record was last marked as restored; 0: never.
func (s *Store) RestoreMark(ctx context.Context) (mark int64, err error) {
	defer s.timed("restore_mark", &err)()
	err = s.read.db.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'restore_mark'`).Scan(&mark)
	return mark, s.readError("when the record was restored", err)
}
