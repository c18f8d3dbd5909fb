package api

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// Audit reads the audit.
type Audit interface {
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
}

// getAudit lists the rows that follow a number.
func (a *api) getAudit(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Audit == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "this server has no audit")
	}

	// Read the query.
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	after, limit := q.number("after", 0, 0, math.MaxInt), q.number("limit", defaultPage, 1, maxPage)
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Read the head before the rows, so that the rows reach it.
	head, err := a.Audit.AuditHead(r.Context())
	if err != nil {
		return err
	}
	links, err := a.Audit.AuditAfter(r.Context(), int64(after), limit)
	if err != nil {
		return err
	}

	// Render them, with a link to the next page.
	page := client.AuditPage{Rows: make([]client.AuditRow, 0, len(links)), Head: head}
	for i := range links {
		page.Rows = append(page.Rows, client.NewAuditRow(&links[i]))
	}
	if n := len(links); n == limit {
		w.Header().Set("Link", "</api/v1/audit?after="+strconv.FormatInt(links[n-1].Seq, 10)+`>; rel="next"`)
	}

	return answer(w, http.StatusOK, page)
}
