package blueking

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// The sizes of bodies.
const (
	MaxBody        = 4 << 20
	MaxBodyMulti   = 40 << 20
	MaxBodyUnknown = 1 << 20 // kept before the caller is known
	maxDrain       = 8 << 20 // of a refused request, read and forgotten
)

// checkHeaders refuses bodies that would need decoding first. Other content types are not looked at: the bus's own
// client sends none.
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

// received is a request whose sender is known.
type received struct {
	caller gozzard.Caller
	app    auth.App
	body   []byte
	doc    *strictjson.Document
}

// receive reads a request and finds out who sent it, without keeping more than MaxBodyUnknown for a stranger.
//
// Credentials are usually inside the body, so a long body cannot be judged by its size alone. With an app's
// credentials in headers they are checked before anything is read. Without, the first MaxBodyUnknown bytes must
// hold them at the top level (all known clients put them there: they send sorted or credentials-first bodies); the
// rest is read only when the app is proven by then.
func receive(book *auth.Directory, r *http.Request, route *Route) (*received, error) {
	if err := checkHeaders(r.Header); err != nil {
		return nil, err
	}

	head, err := headerCredentials(r)
	if err != nil {
		return nil, err
	}

	var body []byte
	switch {
	case r.Method == http.MethodGet:
		body, err = queryBody(r.URL.RawQuery)
	case head.App != "" && head.Secret != "":
		head.Names = &credentialNames
		if _, err = book.CheckApp(head); err == nil {
			body, err = read(r.Body, route.MaxBody)
		}
	default:
		body, err = readKnown(book, head, r.Body, route.MaxBody)
	}

	if err != nil {
		return nil, err
	}
	if len(body) == 0 && route.Bodiless {
		body = []byte("{}")
	}

	return identify(book, r, route.Access, head, body)
}

// readKnown reads a body whose beginning must prove the app before the rest is read.
func readKnown(book *auth.Directory, head auth.Credentials, src io.Reader, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := io.CopyN(&b, src, min(limit, MaxBodyUnknown)+1); err != nil && !errors.Is(err, io.EOF) {
		return nil, readError(err)
	}
	if int64(b.Len()) <= min(limit, MaxBodyUnknown) {
		return b.Bytes(), nil
	}
	if err := checkPrefix(book, head, b.Bytes()); err != nil {
		return nil, err
	}
	return read(io.MultiReader(&b, src), limit)
}

// checkPrefix proves the app by the first members of a body.
func checkPrefix(book *auth.Directory, head auth.Credentials, prefix []byte) error {
	doc := strictjson.ParsePrefix(prefix)
	if doc == nil {
		if _, err := strictjson.Parse(prefix); err != nil {
			return err
		}
		return gozzard.Errorf(gozzard.ErrInvalid, "body must be a JSON object")
	}

	c, err := documentCredentials(head, doc)
	if err != nil {
		return err
	}
	if c.App == "" || c.Secret == "" {
		return gozzard.Errorf(gozzard.ErrUnauthenticated,
			"bk_app_code and bk_app_secret: required in a header or within the first %d MiB of the body",
			MaxBodyUnknown>>20)
	}

	c.Names = &credentialNames
	_, err = book.CheckApp(c)
	return err
}

func read(src io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(src, limit+1))
	if err != nil {
		return nil, readError(err)
	}
	if int64(len(b)) > limit {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "body has more than %d MiB", limit>>20)
	}
	return b, nil
}

// drain reads a little of what a refused request still has to say and forgets it: most clients send all before they
// read, and closing on them would reset the connection and lose the answer. A client that waits to be asked
// (Expect) is not asked.
func drain(r *http.Request) {
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // what fails here fails again when the answer is written
	}
}

func readError(err error) error {
	return &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "body could not be read to its end", Cause: err}
}

func identify(book *auth.Directory, r *http.Request, access Access, head auth.Credentials, body []byte) (*received,
	error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}

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

// queryBody turns query parameters into the body they stand for: objects and lists are given as JSON text, all else
// is a string.
func queryBody(raw string) ([]byte, error) {
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
		if !strings.HasPrefix(v, "{") && !strings.HasPrefix(v, "[") {
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

// appendString writes a JSON string. Invalid UTF-8 stays as it is, for Parse to refuse.
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

// idempotencyKey reads the header by which a repeated request is recognised.
func idempotencyKey(h http.Header) (string, error) {
	key := h.Get("Idempotency-Key")
	bad := len(key) > maxIdempotencyKey
	for i := 0; i < len(key) && !bad; i++ {
		bad = key[i] < 0x20 || key[i] > 0x7e
	}
	if bad || len(h.Values("Idempotency-Key")) > 1 {
		return "", &gozzard.Error{Kind: gozzard.ErrInvalid, Faults: []gozzard.Fault{{Path: "Idempotency-Key",
			Text: "must be one header of at most " + strconv.Itoa(maxIdempotencyKey) + " printable ASCII characters"}}}
	}
	return key, nil
}
