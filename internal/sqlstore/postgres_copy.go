package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// copyFrom is how many rows are worth a COPY: it asks the database for the types of the columns first.
const copyFrom = 512

// copyRows inserts rows with COPY, which costs the database and the server a half of an INSERT with the same rows.
func copyRows(ctx context.Context, c *sql.Conn, b *bulk, n int, args func(i int, to []any) []any) error {
	row := make([]any, 0, len(b.types))
	source := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		row = args(i, row[:0])
		return row, nil
	})

	return c.Raw(func(dc any) error {
		conn, ok := dc.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("COPY needs a connection of pgx, not %T", dc)
		}
		_, err := conn.Conn().CopyFrom(ctx, pgx.Identifier{b.table}, b.columns, source)
		return err
	})
}
