package sqlstore

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"sync"

	"github.com/gozzard/gozzard"
)

const (
	minPacked  = 512      // shorter texts are not compressed: it takes longer than it takes to store what it saves
	maxUnpack  = 64 << 20 // longer texts are not read: the longest list of hosts has a few MiB
	textsTable = "audit_texts"
)

var insertAuditTexts = insertRows(textsTable, "digest, packed, body", " ON CONFLICT (digest) DO NOTHING")

// packedText is a text of the audit as it is stored.
type packedText struct {
	digest [sha256.Size]byte
	packed bool
	body   []byte
}

// packers are kept for the next texts: a new one takes more than 1 MiB, which is most of the cost of a small task.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is valid
	return w
}}

// packTexts compresses texts. It takes milliseconds for thousands of hosts, so callers with such lists do it before
// their transaction.
func packTexts(texts [][]byte) ([]packedText, error) {
	list := make([]packedText, 0, len(texts))
	for _, t := range texts {
		p := packedText{digest: sha256.Sum256(t), body: t}
		if len(t) >= minPacked {
			var err error
			if p.body, err = pack(t); err != nil {
				return nil, err
			}
			p.packed = true
		}
		list = append(list, p)
	}
	return list, nil
}

// pack compresses one text.
func pack(text []byte) ([]byte, error) {
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)

	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func putTexts(ctx context.Context, c *conn, list []packedText) error {
	return c.put(ctx, insertAuditTexts, len(list), func(i int, to []any) []any {
		return append(to, list[i].digest[:], list[i].packed, list[i].body)
	})
}

// keepSpecs copies definitions that are about to be removed, because audit rows name them. They are copied as late as
// this so that an operation does not write its definitions twice.
const keepSpecs = `INSERT INTO ` + textsTable + ` (digest, packed, body)
	SELECT hash, FALSE, body FROM specs WHERE `

// auditText reads a text by its digest: a list of hosts, a content or a definition. found is false when the record has
// none.
func auditText(ctx context.Context, db auditDB, digest [sha256.Size]byte) (text []byte, found bool, err error) {
	var packed bool
	query := `SELECT FALSE, body FROM specs WHERE hash = $1`
	if !db.plain {
		query = `SELECT packed, body FROM ` + textsTable + ` WHERE digest = $1 UNION ALL ` + query
	}
	rows, err := db.QueryContext(ctx, query, digest[:])
	err = scanAll(rows, err, func(r *sql.Rows) error {
		found = true
		text = nil
		return r.Scan(&packed, &text)
	})
	if err != nil || !found {
		return nil, false, err
	}

	if packed {
		if text, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(text)), maxUnpack+1)); err != nil {
			return nil, true, fmt.Errorf("text %x of the audit is damaged: %w", digest[:8], err)
		}
	}
	if len(text) > maxUnpack || sha256.Sum256(text) != digest {
		return nil, true, fmt.Errorf("text %x of the audit is damaged: it does not have its digest", digest[:8])
	}
	return text, true, nil
}

// AuditText reads what an audit row names by its SHA-256: a list of hosts, a content or a definition.
func (s *Store) AuditText(ctx context.Context, digest [sha256.Size]byte) (text []byte, err error) {
	defer s.timed("audit_text", &err)()
	text, found, err := auditText(ctx, s.auditDB(), digest)
	if err == nil && !found {
		return nil, errNoText(digest)
	}
	return text, s.readError("a text of the audit", err)
}

// AuditText is Store.AuditText.
func (f *AuditFile) AuditText(ctx context.Context, digest [sha256.Size]byte) ([]byte, error) {
	text, found, err := auditText(ctx, f.audit, digest)
	if err == nil && !found {
		err = errNoText(digest)
	}
	return text, err
}

func errNoText(digest [sha256.Size]byte) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "the audit has no text %x", digest[:])
}
