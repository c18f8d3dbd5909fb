package api

import (
	"context"
	"encoding/hex"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// Audit is the record of who asked for what, as this API needs it.
type Audit interface {
	AuditAfter(ctx context.Context, seq int64, limit int) ([]gozzard.AuditLink, error)
	AuditHead(ctx context.Context) (gozzard.AuditHead, error)
}

// auditBody is a part of the audit in the order of its chain. Head is the newest row of all, as it was before the
// rows were read.
type auditBody struct {
	Rows []auditRow        `json:"rows"`
	Head gozzard.AuditHead `json:"head"`
}

// auditRow has everything that its hash covers, so that whoever reads it can follow the chain himself.
type auditRow struct {
	Seq         int64             `json:"seq"`
	At          string            `json:"at"` // RFC 3339, milliseconds; "" when not known
	App         string            `json:"app"`
	User        string            `json:"user"`
	Asserted    bool              `json:"asserted"` // the user is only the app's word
	Act         string            `json:"act"`
	TaskID      string            `json:"task_id"`
	RequestHash string            `json:"request_hash"`
	Targets     int               `json:"targets"`
	HostsHash   string            `json:"hosts_hash"`
	Hash        gozzard.AuditHash `json:"hash"`
}

// getAudit lists rows after a number. It tells of everybody's acts, so it is for who may do everything.
func (a *api) getAudit(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	if !caller.Rights.All() {
		return gozzard.Errorf(gozzard.ErrUserForbidden, "the audit is for admins of the whole fleet")
	}
	if a.Audit == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "no audit is kept")
	}

	q, err := readQuery(r, "after", "limit")
	if err != nil {
		return err
	}

	after, limit := q.number("after", 0, 0, math.MaxInt), q.number("limit", defaultPage, 1, maxPage)

	if err := q.faults.Err(); err != nil {
		return err
	}

	head, err := a.Audit.AuditHead(r.Context())
	if err != nil {
		return err
	}

	links, err := a.Audit.AuditAfter(r.Context(), int64(after), limit)
	if err != nil {
		return err
	}

	body := auditBody{Rows: make([]auditRow, 0, len(links)), Head: head}
	for i := range links {
		body.Rows = append(body.Rows, newAuditRow(&links[i]))
	}

	if n := len(links); n == limit {
		w.Header().Set("Link", "</api/v1/audit?after="+strconv.FormatInt(links[n-1].Seq, 10)+`>; rel="next"`)
	}

	return answer(w, http.StatusOK, body)
}

func newAuditRow(l *gozzard.AuditLink) auditRow {
	at := ""
	if !l.At.IsZero() {
		at = l.At.UTC().Format(time.RFC3339Nano)
	}
	return auditRow{
		Seq: l.Seq, At: at, App: l.Caller.App, User: l.Caller.User, Asserted: l.Caller.Asserted, Act: l.Act,
		TaskID:      l.TaskID,
		RequestHash: hex.EncodeToString(l.RequestHash[:]), Targets: l.Targets,
		HostsHash: hex.EncodeToString(l.HostsHash[:]), Hash: l.Hash,
	}
}
