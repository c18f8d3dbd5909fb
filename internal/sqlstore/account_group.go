package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard/internal/auth"
)

func scanGrantGroup(r *sql.Rows, to *[]auth.Group) error {
	var g auth.Group
	var grants string
	if err := r.Scan(&g.Name, &grants); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(grants), &g.Grants); err != nil {
		return fmt.Errorf("group %q is not readable: %w", g.Name, err)
	}
	*to = append(*to, g)
	return nil
}

func scanDeletedUser(r *sql.Rows, to *[]auth.DeletedUser) error {
	var d auth.DeletedUser
	if err := r.Scan(&d.Name, (*stamp)(&d.At)); err != nil {
		return err
	}
	*to = append(*to, d)
	return nil
}

// putGroups writes the groups and the names of deleted users.
func putGroups(ctx context.Context, w *conn, c *auth.Change, rows *accountRows) error {
	for i := range c.Groups {
		if len(c.Groups[i].Grants) == 0 {
			continue
		}
		err := w.execRows(ctx, upsertGrantGroups, 1, func(_ int, to []any) []any {
			return append(to, text(c.Groups[i].Name), rows.groupGrants[i])
		})
		if err != nil {
			return err
		}
	}

	return w.execRows(ctx, upsertDeletedUsers, len(c.Deleted), func(i int, to []any) []any {
		return append(to, text(c.Deleted[i].Name), millis(c.Deleted[i].At))
	})
}

// unknownUsers is the word of the column for what an app gives to people that are no users.
func unknownUsers(a *auth.App) string {
	switch {
	case a.UnknownUsers == nil:
		return ""
	case *a.UnknownUsers:
		return unknownRights
	}
	return unknownNothing
}
