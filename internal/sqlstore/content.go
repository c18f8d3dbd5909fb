package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// KeepContents implements control.Store.
func (s *Store) KeepContents(ctx context.Context, list []record.Content, until time.Time) (err error) {
	defer s.timed("keep_contents", &err)()
	return s.w.submit(ctx, &job{op: "contents of files", rows: len(list), grows: true, run: func(ctx context.Context, c *conn) error {
		for i := range list {
			if err := keepContent(ctx, c, &list[i], until); err != nil {
				return err
			}
		}

		var n int64
		_, err := c.one(ctx, `SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM file_contents`, nil, &n)
		if err == nil && n > record.MaxContents {
			err = gozzard.Errorf(gozzard.ErrStorageFull, "the large files of all tasks together would have %d bytes, at most %d are "+
				"kept: try again when older tasks have ended and their results are removed", n, int64(record.MaxContents))
		}
		return err
	}})
}

func keepContent(ctx context.Context, c *conn, x *record.Content, until time.Time) error {
	hash, err := hex.DecodeString(x.Digest)
	if err != nil {
		return fmt.Errorf("digest of a content: %w", err)
	}

	// Keep one that is there for longer.
	n, err := c.change(ctx, `UPDATE file_contents SET keep_until = CASE WHEN keep_until < $2 THEN $2 ELSE keep_until END
		WHERE hash = $1`, hash, millis(until))
	if err != nil || n > 0 {
		return err
	}
	if x.Body == nil {
		return gozzard.Errorf(gozzard.ErrConflict, "the record does not have the content with sha256 %s any more: write the file again "+
			"with its content", x.Digest)
	}

	_, err = c.change(ctx, `INSERT INTO file_contents (hash, size, keep_until, body) VALUES ($1, $2, $3, $4)`, hash, len(x.Body),
		millis(until), x.Body)
	return err
}

// Content implements control.Store.
func (s *Store) Content(ctx context.Context, digest string) (body []byte, err error) {
	defer s.timed("content", &err)()
	hash, err := hex.DecodeString(digest)
	if err != nil {
		return nil, fmt.Errorf("digest of a content: %w", err)
	}
	err = s.read.each(ctx, `SELECT body FROM file_contents WHERE hash = $1`, []any{hash},
		func(r *sql.Rows) error { return r.Scan(&body) })
	if err == nil && body == nil {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "the record does not have the content with sha256 %s any more", digest)
	}
	return body, s.readError("the content of a file", err)
}

// PruneContents implements control.Store.
func (s *Store) PruneContents(ctx context.Context, now time.Time) (err error) {
	defer s.timed("prune_contents", &err)()
	return s.w.submit(ctx, &job{op: "the removal of contents of files", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `DELETE FROM file_contents WHERE keep_until < $1`, millis(now))
		return err
	}})
}
