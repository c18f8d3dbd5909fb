package blueking

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The largest bodies.
const (
	MaxBody        = 4 << 20
	MaxBodyMulti   = 40 << 20
	MaxBodyUnknown = 1 << 20  // read before the app is identified
	maxDrain       = 8 << 20  // of a rejected request, read and dropped
	firstBytes     = 64 << 10 // after which the credentials are looked for, so that no more is read for a stranger
)

// checkHeaders rejects bodies that would need decoding first. Other content types are ignored: the client of the
// BlueKing bus sends none.
func checkHeaders(h http.Header) error {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return gozzard.Errorf(gozzard.ErrInvalid, "Content-Encoding %s is not accepted: send the body as it is",
			strictjson.Quote(e))
	}
	if t := h.Get("Content-Type"); strings.Contains(strings.ToLower(t), "xml") {
		return gozzard.Errorf(gozzard.ErrInvalid, "Content-Type %s is not accepted: send JSON", strictjson.Quote(t))
	}
	return nil
}

// received is a request of an identified caller.
type received struct {
	caller gozzard.Caller
	app    auth.App
	body   []byte
	doc    *strictjson.Document
}

// receive reads a request and identifies its caller. It holds at most MaxBodyUnknown bytes for a caller that is not
// identified yet.
//
// If the headers have the app's credentials, they are checked before the body is read. Most clients have the
// credentials in the body, at the top level. Then they are looked for in the first firstBytes bytes, and the rest is
// read only after the app is identified. Some clients append their credentials to the body. For those the server reads
// up to MaxBodyUnknown bytes, as far as its budget for all unknown callers lasts (package ratelimit).
func receive(book *auth.Directory, r *http.Request, route *Route) (*received, error) {
	if err := checkHeaders(r.Header); err != nil {
		return nil, err
	}

	// Read the credentials in the headers.
	head, err := headerCredentials(r)
	if err != nil {
		return nil, err
	}

	// Read the body, as far as the caller may send one.
	var body []byte
	switch {
	case r.Method == http.MethodGet:
		body, err = queryBody(r.URL.RawQuery, route.TextQuery)
	case head.App != "" && head.Secret != "":
		head.Names = &credentialNames
		if _, err = book.CheckApp(head); err == nil {
			identified(r)
			body, err = read(r, r.Body, route.MaxBody)
		}
	default:
		body, err = readKnown(book, head, r, route.MaxBody)
	}

	if err != nil {
		return nil, err
	}
	if len(body) == 0 && route.Bodiless {
		body = []byte("{}")
	}

	return identify(book, r, route.Access, head, body)
}

// readKnown reads a body. If it is long, its beginning must identify the app before the rest is read.
func readKnown(book *auth.Directory, head auth.Credentials, r *http.Request, limit int64) ([]byte, error) {
	var b bytes.Buffer
	for _, most := range []int64{min(limit, firstBytes), min(limit, MaxBodyUnknown)} {
		if _, err := io.CopyN(&b, r.Body, most+1-int64(b.Len())); err != nil && !errors.Is(err, io.EOF) {
			return nil, readError(err)
		}
		if int64(b.Len()) <= most {
			return b.Bytes(), nil
		}
		found, err := checkPrefix(book, head, b.Bytes())
		if err != nil {
			return nil, err
		}
		if found {
			identified(r)
			return read(r, io.MultiReader(&b, r.Body), limit)
		}
	}

	return nil, gozzard.Errorf(gozzard.ErrUnauthenticated,
		"bk_app_code and bk_app_secret: required in a header or within the first %d MiB of the body", MaxBodyUnknown>>20)
}

// identified says that the rest of a body is not read for an unknown caller.
func identified(r *http.Request) {
	if b, ok := r.Body.(interface{ Identified() }); ok {
		b.Identified()
	}
}

// checkPrefix identifies the app by the first members of a body. found is false if they have no credentials.
func checkPrefix(book *auth.Directory, head auth.Credentials, prefix []byte) (found bool, err error) {
	doc := strictjson.ParsePrefix(prefix)
	if doc == nil {
		if _, err := strictjson.Parse(prefix); err != nil {
			return false, err
		}
		return false, gozzard.Errorf(gozzard.ErrInvalid, "body must be a JSON object")
	}

	c, err := documentCredentials(head, doc)
	if err != nil || c.App == "" || c.Secret == "" {
		return false, err
	}

	c.Names = &credentialNames
	_, err = book.CheckApp(c)
	return err == nil, err
}

// read reads the body of an identified caller from src. A body whose announced length is above the limit is not kept:
// that would only cost memory.
func read(r *http.Request, src io.Reader, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLong(r, limit)
	}
	b, err := io.ReadAll(io.LimitReader(src, limit+1))
	if err != nil {
		return nil, readError(err)
	}
	if int64(len(b)) > limit {
		return nil, errTooLong(r, limit)
	}
	return b, nil
}

// errTooLong rejects a body. The server reads and drops it before it answers (package ratelimit), however long it is.
func errTooLong(r *http.Request, limit int64) error {
	if b, ok := r.Body.(interface{ DropLong() }); ok {
		b.DropLong()
	}
	return gozzard.Errorf(gozzard.ErrInvalid, "body has more than %d MiB: send fewer processes or hosts in one request",
		limit>>20)
}

// drain reads and drops the rest of a rejected request, up to a limit. Most clients send everything before they read;
// closing the connection earlier would reset it, and the client would lose the answer. A client that waits for
// "100 Continue" (Expect) has sent nothing yet. Package ratelimit does the same for longer bodies, and for a limited
// time: what it does is not done here.
func drain(r *http.Request) {
	if _, limited := r.Body.(interface{ DropLong() }); !limited && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // an error here shows again when the answer is written
	}
}

func readError(err error) error {
	if gozzard.KindOf(err) == gozzard.ErrRateLimited { // of package ratelimit
		return err
	}
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "body could not be read to its end", Cause: err}
}

// identify parses the body, collects the credentials from all places and checks them.
func identify(book *auth.Directory, r *http.Request, access Access, head auth.Credentials, body []byte) (*received,
	error) {
	// Parse the body.
	doc, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}

	// Collect the credentials.
	c, err := documentCredentials(head, doc)
	if err != nil {
		return nil, err
	}

	in := &received{body: body, doc: doc}

	if c, err = cookieCredentials(c, r); err != nil {
		return nil, err
	}
	if c.Secret == "" {
		if err := addSignature(&c, r, body); err != nil {
			return nil, err
		}
	}

	// Check them.
	c.Names = &credentialNames
	if access == AccessApp {
		in.app, err = book.CheckApp(c)
		in.caller = gozzard.Caller{App: in.app.Code}
		in.caller.Rights = book.RightsOf(in.caller)
	} else {
		in.caller, in.app, err = book.Check(r.Context(), c)
	}

	if err != nil {
		return nil, err
	}

	return in, nil
}

// queryBody turns query parameters into a body. Objects and lists are JSON text in the query; all other values are
// strings. With text all values are strings.
func queryBody(raw string, text bool) ([]byte, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "query string is malformed")
	}

	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}

	slices.Sort(names)
	var faults strictjson.Faults
	b := []byte{'{'}
	for _, name := range names {
		values := q[name]
		if len(values) > 1 {
			faults.Add(strictjson.Clip(name), "given %d times", len(values))
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		v := values[0]
		if text || !strings.HasPrefix(v, "{") && !strings.HasPrefix(v, "[") {
			b = appendString(b, v)
			continue
		}
		if _, err := strictjson.Parse([]byte(v)); err != nil {
			faults.Add(strictjson.Clip(name), "%s", strings.TrimPrefix(Text(err), "body is "))
			continue
		}
		b = append(b, v...)
	}

	return append(b, '}'), faults.Err()
}

// appendString writes a JSON string. Invalid UTF-8 stays as it is; Parse rejects it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

const maxIdempotencyKey = 255

// idempotencyKey reads the header that identifies a repeated request.
func idempotencyKey(h http.Header) (string, error) {
	key := h.Get("Idempotency-Key")
	bad := len(key) > maxIdempotencyKey
	for i := 0; i < len(key) && !bad; i++ {
		bad = key[i] < 0x20 || key[i] > 0x7e
	}
	if bad || len(h.Values("Idempotency-Key")) > 1 {
		return "", &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "Idempotency-Key",
			Text: fmt.Sprintf("must be one header of at most %d printable ASCII characters", maxIdempotencyKey)}}}
	}
	return key, nil
}
