package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// maxAnswer is the largest answer that is read, in bytes. The attempts of the largest task are smaller.
const maxAnswer = 256 << 20

// call is one request. Its body and its answer are JSON unless kind and accept name another type.
type call struct {
	method, path string
	key          string // Idempotency-Key
	body         []byte
	kind, accept string
}

// retries are the pauses before a request that got no answer is sent again.
func retries() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second}
}

// change sends a request that creates a task. If no answer arrives, the client cannot know whether the server
// accepted the request. So the request carries a key and is sent again with it: the server creates one task.
func (c *Client) change(ctx context.Context, method, path, key string, in any) (Accepted, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Accepted{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	if key == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the program instead
		key = hex.EncodeToString(b[:])
	}

	var out Accepted
	for _, pause := range append(retries(), -1) {
		err = c.do(ctx, call{method: method, path: path, key: key, body: body}, &out)
		if gozzard.KindOf(err) != gozzard.ErrUnavailable || err == nil || pause < 0 {
			break
		}
		select {
		case <-ctx.Done():
			return Accepted{}, ctx.Err()
		case <-time.After(pause):
		}
	}

	return out, err
}

// write sends a change that is not a task. in and out may be nil. It is not repeated, because a second try could
// create a second secret.
func (c *Client) write(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	if out == nil {
		out = new(map[string]any)
	}
	return c.do(ctx, call{method: method, path: path, body: body}, out)
}

// get reads an answer. It is not repeated: a caller that polls asks again anyway.
func (c *Client) get(ctx context.Context, path string, q url.Values, out any) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return c.do(ctx, call{method: http.MethodGet, path: path}, out)
}

// do sends a call and decodes its answer.
func (c *Client) do(ctx context.Context, what call, out any) error {
	answer, err := c.send(ctx, what)
	if err != nil {
		return err
	}
	if what.method != http.MethodGet {
		if h := heldBy(answer); h != nil {
			return h
		}
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrInternal,
			Message: fmt.Sprintf("%s does not answer like a gozzard server", c.base.Host), Cause: err}
	}
	return nil
}

// send sends a call and returns the body of its answer.
func (c *Client) send(ctx context.Context, what call) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, what.method, c.base.String()+what.path, bytes.NewReader(what.body))
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}

	const asJSON = "application/json"
	req.Header.Set("Accept", cmp.Or(what.accept, asJSON))
	if what.body != nil {
		req.Header.Set("Content-Type", cmp.Or(what.kind, asJSON))
	}
	if what.key != "" {
		req.Header.Set("Idempotency-Key", what.key)
	}

	return c.exchange(ctx, req, maxAnswer)
}

// exchange sends a request with the credentials and reads its answer.
func (c *Client) exchange(ctx context.Context, req *http.Request, limit int64) ([]byte, error) {
	c.authorize(req)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	defer res.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return nil, c.transportError(ctx, err)
	case int64(len(answer)) > limit:
		return nil, gozzard.Errorf(gozzard.ErrInternal, "the answer of %s has more than %d MiB", c.base.Host, limit>>20)
	case res.StatusCode >= 300:
		return nil, errorOf(res.StatusCode, answer)
	}

	return answer, nil
}

func (c *Client) transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the URL, which the message has already
	}
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) { // it did answer
		return &gozzard.Error{Kind: gozzard.ErrUnavailable, Cause: bad.Err,
			Message: fmt.Sprintf("the certificate of %s is not trusted", c.base)}
	}
	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "no answer from " + c.base.String(), Cause: err}
}
