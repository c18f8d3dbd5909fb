package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// Audit reads the audit.
type Audit interface {
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
	FindAudit(ctx context.Context, f gozzard.AuditFilter, limit int) ([]gozzard.AuditFound, int64, error)
	AuditRow(ctx context.Context, seq int64) (gozzard.AuditFound, error)
	AuditText(ctx context.Context, digest [32]byte) ([]byte, error)
}

func (a *api) audit() (Audit, error) {
	if a.Audit == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "this server has no audit")
	}
	return a.Audit, nil
}

// auditQuery is the audit, and the query of a request about it.
func (a *api) auditQuery(r *http.Request) (Audit, *query, error) {
	audit, err := a.audit()
	if err != nil {
		return nil, nil, err
	}
	q, err := a.readQuery(r)
	return audit, q, err
}

// auditHead reads the head of the audit for a query without faults. It is read before the rows, so that the rows reach it.
func (q *query) auditHead(ctx context.Context, audit Audit) (gozzard.AuditHead, error) {
	if err := q.faults.Err(); err != nil {
		return gozzard.AuditHead{}, err
	}
	return audit.AuditHead(ctx)
}

// getAudit lists the rows that follow a number, or those that a filter chooses.
func (a *api) getAudit(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the query.
	audit, q, err := a.auditQuery(r)
	if err != nil {
		return err
	}
	f := gozzard.AuditFilter{Host: q.one("host"), Account: q.one("account"), App: q.one("app"), User: q.one("user"),
		Action: q.one("action"), Since: q.time("since"), Until: q.time("until"), Newest: q.flag("newest"),
		After: int64(q.number("after", 0, 0, math.MaxInt)), Before: int64(q.number("before", 0, 0, math.MaxInt))}
	limit := q.number("limit", defaultPage, 1, maxPage)
	if f.Before > 0 && !f.Newest || f.After > 0 && f.Newest {
		q.faults.Add("newest", "before needs newest=true, and after is for newest=false")
	}
	clouds := cloudFinder{plane: a.Plane, caller: caller, anyCloud: true}
	if t, err := parseHost(f.Host, &clouds); err == nil && t.Agent != "" { // it may be given by its name
		f.Host = string(t.Agent)
	}
	head, err := q.auditHead(r.Context(), audit)
	if err != nil {
		return err
	}

	// Read the rows.
	found, next, err := audit.FindAudit(r.Context(), f, limit)
	if err != nil {
		return err
	}

	// Render them, with a link to the next page.
	page := client.AuditPage{Rows: make([]client.AuditRow, 0, len(found)), Head: head, Next: next}
	for i := range found {
		page.Rows = append(page.Rows, client.NewAuditFound(&found[i]))
	}
	if next > 0 {
		values := r.URL.Query()
		values.Set(map[bool]string{true: "before", false: "after"}[f.Newest], strconv.FormatInt(next, 10))
		w.Header().Set("Link", "</api/v1/audit?"+values.Encode()+`>; rel="next"`)
	}

	return answer(w, http.StatusOK, page)
}

// time is a time in the form of RFC 3339; the zero time if it is missing.
func (q *query) time(name string) time.Time {
	s := q.one(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.faults.Add(name, "must be a time such as 2026-11-15T08:00:00Z, is %q", clip(s))
	}
	return t
}

// getAuditRow reads a row with a page of its hosts and items.
func (a *api) getAuditRow(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	audit, err := a.audit()
	if err != nil {
		return err
	}
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	start, limit := q.page()
	seq, err := strconv.ParseInt(r.PathValue("row"), 10, 64)
	if err != nil {
		q.faults.Add("row", "must be the number of a row")
	}
	if err := q.faults.Err(); err != nil {
		return err
	}

	row, err := audit.AuditRow(r.Context(), seq)
	if err != nil {
		return err
	}
	text := func(digest [32]byte) ([]byte, error) { return audit.AuditText(r.Context(), digest) }
	d, err := client.NewAuditDetail(&row, text, start, limit)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, d)
}

// getAuditDefinition reads a definition that a row names by its digest.
func (a *api) getAuditDefinition(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	audit, err := a.audit()
	if err != nil {
		return err
	}
	digest, ok := client.ParseDigest(r.PathValue("digest"))
	if !ok {
		return gozzard.Errorf(gozzard.ErrInvalid, "digest: must be a SHA-256 in hexadecimal, 64 digits")
	}

	text, err := audit.AuditText(r.Context(), digest)
	if err != nil {
		return err
	}
	if !json.Valid(text) { // a list of hosts
		return gozzard.Errorf(gozzard.ErrNotFound, "the audit has no definition %x", digest[:])
	}
	return answer(w, http.StatusOK, json.RawMessage(text))
}
