package audit

import (
	"context"

	"github.com/gozzard/gozzard"
)

// Reads of contents that a minute may count by number. Above it, also equal ones have rows of their own.
const (
	maxReads   = 1024
	equalReads = "further equal reads of this minute"
)

// Read writes the row of a caller that is about to see a content. The row is in the record when Read returns; after an error
// the caller must not see it. Equal reads of the same caller within a minute are counted, and a row at its end has their number.
//
// Unlike queries, different reads always have rows of their own: the audit must say which files a caller has seen, so that a
// hundred harmless ones do not hide the one that matters.
func (r *Recorder) Read(ctx context.Context, row gozzard.AuditRow) error {
	k := query{door: row.Door, source: row.Source, act: row.Act, accounts: row.Accounts, targets: row.Targets,
		hosts: row.HostsHash, content: row.Content, about: equalReads,
		caller: gozzard.Caller{App: row.Caller.App, User: row.Caller.User, Asserted: row.Caller.Asserted}}
	if r.countRead(k, row.RequestID) {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := r.o.Store.AddAudit(ctx, []gozzard.AuditRow{row}); err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads[k] == nil && len(r.reads) < maxReads && !r.ended {
		r.reads[k] = &queryCount{since: r.o.Now()}
	}
	return nil
}

// countRead counts a read whose like has a row already.
func (r *Recorder) countRead(k query, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.reads[k]
	if c == nil {
		return false
	}
	c.more++
	c.id = id
	return true
}
