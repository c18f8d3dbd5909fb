package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/cmdb"
)

// cmdbCalls makes calls of CMDB for callers. CMDB sees the credentials of the server only, so the audit says which caller
// wanted a change.
type cmdbCalls struct {
	client *cmdb.Client
	audit  interface {
		AddAudit(ctx context.Context, rows []gozzard.AuditRow) error
	}
	log *slog.Logger
}

// Read implements gsekit.CMDB.
func (c *cmdbCalls) Read(ctx context.Context, call string, body any) (json.RawMessage, error) {
	return c.client.Do(ctx, call, body)
}

// Write implements gsekit.CMDB. The row of the audit is written first: a change that is not in it is not made.
func (c *cmdbCalls) Write(ctx context.Context, caller gozzard.Caller, biz int, call string, body any) (json.RawMessage, error) {
	row := gozzard.AuditRow{At: time.Now(), Caller: caller, Act: fmt.Sprintf("cmdb:%s %d", call, biz), Targets: 1,
		Origin: gozzard.OriginOf(ctx)}
	if err := c.audit.AddAudit(ctx, []gozzard.AuditRow{row}); err != nil {
		return nil, err
	}
	data, err := c.client.Do(ctx, call, body)
	c.log.Info("call of CMDB for a caller", "call", call, "biz", biz, "app", caller.App, "user", caller.User, "err", err)
	return data, err
}
