package audit

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Bounds of what queries write: at most maxQueriesOfCaller different queries of one caller a minute have their own rows,
// and of all callers at most maxQueries. All others are counted.
const (
	maxQueriesOfCaller = 16
	maxQueries         = 1024
	equalQueries       = "further equal queries of this minute"
	otherQueries       = "further queries of this minute, with other content"
)

// query is what two equal queries have in common.
type query struct {
	caller         gozzard.Caller
	door, source   string
	act, accounts  string
	targets        int
	hosts, content [32]byte
	about          string // what the row of the number says
}

// queryCount is the queries of one kind since a time. The first has its own row.
type queryCount struct {
	since time.Time
	id    string // of the newest request
	more  int
}

// FoldQuery decides about the row of an accepted operation that changes nothing. The row is written if quiet is false.
// Otherwise the operation is only counted, and a row at the end of the minute has the number. The caller calls done
// when it knows whether the operation is in the record.
//
// Nothing else may be folded: whatever changes something has its own row.
func (r *Recorder) FoldQuery(row gozzard.AuditRow) (quiet bool, done func(recorded bool)) {
	k := query{door: row.Door, source: row.Source, act: row.Act, accounts: row.Accounts, targets: row.Targets,
		hosts: row.HostsHash, content: row.Content, about: equalQueries,
		caller: gozzard.Caller{App: row.Caller.App, User: row.Caller.User, Asserted: row.Caller.Asserted}}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false, func(bool) {}
	}

	// The first of its kind has its own row.
	c := r.queries[k]
	if c == nil && len(r.queries) < maxQueries && r.queriesOf(holder(k.caller)) < maxQueriesOfCaller {
		c = &queryCount{since: r.o.Now()}
		r.queries[k] = c
		return false, func(recorded bool) { r.undoQuery(k, c, !recorded) }
	}

	// Others are counted. Without a row of their kind, they are counted together.
	if c == nil {
		k = query{caller: holder(k.caller), door: k.door, act: k.act, about: otherQueries}
		c = r.queries[k]
	}
	if c == nil {
		c = &queryCount{since: r.o.Now()}
		r.queries[k] = c
	}
	c.more++
	c.id = row.RequestID
	return true, func(recorded bool) { r.undoQuery(k, c, !recorded) }
}

// undoQuery takes back what FoldQuery counted, unless it is in the audit already.
func (r *Recorder) undoQuery(k query, c *queryCount, undo bool) {
	if !undo {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queries[k] != c {
		return
	}
	if c.more > 0 {
		c.more--
		return
	}
	delete(r.queries, k) // its row was not written: the next one has it
}

// holder is the app of a caller, or the person if there is no app. An app can name any number of users.
func holder(c gozzard.Caller) gozzard.Caller {
	if c.App != "" {
		return gozzard.Caller{App: c.App}
	}
	return gozzard.Caller{User: c.User}
}

// queriesOf is how many kinds of queries with rows of their own an app or person has. The caller holds mu.
func (r *Recorder) queriesOf(h gozzard.Caller) (n int) {
	for k := range r.queries {
		if k.about == equalQueries && holder(k.caller) == h {
			n++
		}
	}
	return n
}

// dueQueries takes out the rows about numbers of queries and reads that are to be written now. The caller holds mu.
func (r *Recorder) dueQueries(now time.Time, all bool) (rows []gozzard.AuditRow) {
	for _, kinds := range []map[query]*queryCount{r.queries, r.reads} {
		for k, c := range kinds {
			if !all && now.Sub(c.since) < window {
				continue
			}
			delete(kinds, k)
			if c.more > 0 {
				rows = append(rows, gozzard.AuditRow{At: now, Caller: k.caller, Act: k.act, Accounts: k.accounts,
					Targets: k.targets, HostsHash: k.hosts, Content: k.content, Outcome: k.about, Count: c.more,
					Origin: gozzard.Origin{Door: k.door, Source: k.source, RequestID: c.id}})
			}
		}
	}
	return rows
}
