package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/taskname"
)

const (
	// actPolicy is the act of a row about what the policies of hosts rejected. It is stored, so it cannot change.
	actPolicy = "refused:policy"

	maxReasons     = 3   // different reasons in one row; the results of the task have all
	maxReasonBytes = 200 // of one reason: it is a text of a host
)

var (
	selectRefused = withRows(`SELECT a.task_seq, a.item, a.agent_id, a.cloud, a.ip, a.outcome
		FROM v JOIN attempts a ON a.task_seq = v.t WHERE a.outcome LIKE '%"policy":true%' ORDER BY a.task_seq, a.idx`,
		"t BIGINT")

	refusedItems = withRows(`SELECT i.task_seq, i.item, i.namespace, i.name, i.action, s.body
		FROM v JOIN items i ON i.task_seq = v.t AND i.item = v.i LEFT JOIN specs s ON s.hash = i.spec_hash
		ORDER BY i.task_seq, i.item`, "t BIGINT", "i INTEGER")
)

// refusals are the attempts of one task that the policies of hosts rejected.
type refusals struct {
	hosts    []gozzard.Attempt // their agents and addresses
	perItem  map[int64]int     // how many attempts each item has
	reasons  []string
	others   int // attempts with further reasons
	items    []gozzard.AuditItem
	accounts []string
}

// auditRefused writes one row for each task of which the policy of a host rejected something. A caller gets at most one
// such row for each task, however many hosts reject it. It is a part of the transaction that ends the tasks.
func auditRefused(ctx context.Context, c *conn, tasks []gozzard.Task, now time.Time) error {
	refused, err := readRefused(ctx, c, tasks)
	if err != nil || len(refused) == 0 {
		return err
	}
	if err := addItems(ctx, c, refused); err != nil {
		return fmt.Errorf("what policies rejected: %w", err)
	}

	for i := range tasks {
		r := refused[tasks[i].Seq]
		if r == nil {
			continue
		}
		row, err := r.row(&tasks[i], now)
		if err != nil {
			return err
		}
		if err := addAudit(ctx, c, row); err != nil {
			return err
		}
	}
	return nil
}

// readRefused finds the attempts of tasks that were rejected by policy.
func readRefused(ctx context.Context, c *conn, tasks []gozzard.Task) (map[gozzard.TaskSeq]*refusals, error) {
	out := map[gozzard.TaskSeq]*refusals{}
	err := c.queryRows(ctx, selectRefused, len(tasks),
		func(i int, to []any) []any { return append(to, int64(tasks[i].Seq)) }, func(r *sql.Rows) error {
			var seq gozzard.TaskSeq
			var item int64
			var a gozzard.Attempt
			var ip, outcome string
			err := r.Scan(&seq, &item, &a.Agent, &a.Addr.Cloud, &ip, &outcome)
			if err == nil {
				a.Addr.IP, err = fromIP(ip)
			}
			if err == nil {
				err = json.Unmarshal([]byte(outcome), &a.Outcome)
			}
			if err != nil || !a.Outcome.Policy {
				return err
			}

			if out[seq] == nil {
				out[seq] = &refusals{perItem: map[int64]int{}}
			}
			out[seq].add(&a, item)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("attempts that policies rejected: %w", err)
	}
	return out, nil
}

// add adds one attempt of an item.
func (r *refusals) add(a *gozzard.Attempt, item int64) {
	r.hosts = append(r.hosts, gozzard.Attempt{Agent: a.Agent, Addr: a.Addr})
	r.perItem[item]++

	reason := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, a.Outcome.Message[:min(len(a.Outcome.Message), maxReasonBytes)])
	switch {
	case slices.Contains(r.reasons, reason):
	case len(r.reasons) < maxReasons:
		r.reasons = append(r.reasons, reason)
	default:
		r.others++
	}
}

// addItems reads the actions and definitions of what was rejected.
func addItems(ctx context.Context, c *conn, refused map[gozzard.TaskSeq]*refusals) error {
	type place struct{ task, item int64 }
	var places []place
	for seq, r := range refused {
		for item := range r.perItem {
			places = append(places, place{int64(seq), item})
		}
	}

	return c.queryRows(ctx, refusedItems, len(places),
		func(i int, to []any) []any { return append(to, places[i].task, places[i].item) }, func(rows *sql.Rows) error {
			var seq gozzard.TaskSeq
			var item, action int64
			var it gozzard.AuditItem
			var body []byte
			if err := rows.Scan(&seq, &item, &it.Namespace, &it.Name, &action, &body); err != nil {
				return err
			}

			r := refused[seq]
			it.Action, it.Hosts = gozzard.Action(action).String(), r.perItem[item]
			if ref := refOf(body); ref.set {
				it.Definition, it.Account = hex.EncodeToString(ref.hash[:]), accountOf(body)
				r.accounts = append(r.accounts, it.Account)
			}
			r.items = append(r.items, it)
			return nil
		})
}

// row is the audit row. Like the row of the verdicts, it refers to the row of the task.
func (r *refusals) row(t *gozzard.Task, now time.Time) (gozzard.AuditRow, error) {
	about := "refused by policy: " + strings.Join(r.reasons, "; ")
	if r.others > 0 {
		about += fmt.Sprintf("; %d with other reasons", r.others)
	}
	slices.Sort(r.accounts)

	row := gozzard.AuditRow{At: now, Caller: t.Caller, Act: actPolicy, Origin: gozzard.Origin{Door: t.Door},
		TaskID: taskname.Of(t.ID), Targets: len(r.hosts), Ref: int64(t.Seq), Outcome: about,
		Accounts: strings.Join(slices.Compact(r.accounts), ",")}
	row.SetHosts(gozzard.HostLines(r.hosts))

	content, err := json.Marshal(gozzard.AuditContent{Items: r.items})
	if err != nil {
		return row, fmt.Errorf("cannot encode what policies rejected in task %s: %w", row.TaskID, err)
	}
	row.Content = sha256.Sum256(content)
	row.Texts = append(row.Texts, content)
	return row, nil
}
