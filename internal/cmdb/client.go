package cmdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
)

// Options say where CMDB is and how many calls it gets.
type Options struct {
	URL    string // of the bus, such as https://paas.example.com
	App    string
	Secret string
	User   string // that CMDB sees as the caller

	HTTP     *http.Client  // nil means a plain client. Redirects are not followed: they would send the credentials elsewhere
	Parallel int           // calls at a time; 0 means 8
	Timeout  time.Duration // of one call; 0 means 30 s
	Whole    time.Duration // for reading a business; 0 means 10 min
	Pause    time.Duration // after the first call that CMDB refuses, doubled with each; 0 means 1 s
	Log      *slog.Logger
}

// The limits of calls and answers.
const (
	maxAnswer    = 32 << 20
	maxTries     = 4  // of a failing call
	maxRefusals  = 12 // of a call by a rate limit
	maxPause     = time.Minute
	pathPrefix   = "/api/c/compapi/v2/cc/"
	maxMessage   = 200 // bytes of CMDB's message in an error
	authorizedBy = "X-Bkapi-Authorization"
)

// Client reads CMDB.
type Client struct {
	base     string
	auth     string
	http     *http.Client
	o        Options
	throttle throttle
}

// New makes a client.
func New(o Options) (*Client, error) {
	// Check the options.
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a CMDB, such as https://paas.example.com", o.URL)
	}

	if o.App == "" || o.Secret == "" || o.User == "" {
		return nil, errors.New("CMDB needs an app code, its secret and a user")
	}

	// Make the header with the credentials.
	auth, err := json.Marshal(map[string]string{"bk_app_code": o.App, "bk_app_secret": o.Secret, "bk_username": o.User})
	if err != nil {
		return nil, fmt.Errorf("cannot write the credentials: %w", err)
	}

	// Fill in defaults.
	o.Parallel = cmp.Or(o.Parallel, 8)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Whole = cmp.Or(o.Whole, 10*time.Minute)
	o.Pause = cmp.Or(o.Pause, time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	// Follow no redirects.
	client := http.Client{}

	if o.HTTP != nil {
		client = *o.HTTP
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimSuffix(u.String(), "/") + pathPrefix, auth: string(auth), http: &client, o: o}, nil
}

// refusal is an answer that asks to call again later.
type refusal struct {
	after time.Duration // 0 means that the answer has no time
	err   error
}

func (r *refusal) Error() string { return r.err.Error() }

// declined is an answer that is not a success, and would be none the next time.
type declined struct{ error }

func (d *declined) Unwrap() error { return d.error }

// temporary is an error that may not happen again.
type temporary struct{ error }

func (t temporary) Unwrap() error { return t.error }

// call makes a call and repeats it after errors. After a refusal all calls wait; after another error only this one
// does.
func (c *Client) call(ctx context.Context, name string, body, data any) error {
	request, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("cannot write a call of %s: %w", name, err)
	}

	for refused, failed := 0, 0; ; {
		if err := c.throttle.wait(ctx); err != nil {
			return unavailable(name, err)
		}
		err := c.once(ctx, name, request, data)
		if err == nil {
			return nil
		}
		var r *refusal
		var t temporary
		switch {
		case ctx.Err() != nil:
			return unavailable(name, ctx.Err())
		case errors.As(err, &r) && refused < maxRefusals:
			refused++
			c.throttle.pause(max(r.after, backOff(c.o.Pause, refused)))
		case errors.As(err, &t) && failed < maxTries-1:
			failed++
			if err := pace.Sleep(ctx, backOff(c.o.Pause, failed)); err != nil {
				return unavailable(name, err)
			}
		default:
			return unavailable(name, err)
		}
	}
}

func unavailable(name string, err error) error {
	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "cannot read CMDB: " + name, Cause: err}
}

// once makes one call.
func (c *Client) once(ctx context.Context, name string, request []byte, data any) error {
	status, body, err := c.exchange(ctx, name, request)
	if err != nil {
		return err
	}
	return open(status, body, data)
}

// exchange sends one request and returns its answer.
func (c *Client) exchange(ctx context.Context, name string, request []byte) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+name+"/", bytes.NewReader(request))
	if err != nil {
		return 0, nil, err
	}

	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(authorizedBy, c.auth)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, temporary{err}
	}

	defer resp.Body.Close() // a body that is only read
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, temporary{fmt.Errorf("cannot read the answer: %w", err)}
	case len(body) > maxAnswer:
		return 0, nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case resp.StatusCode == http.StatusTooManyRequests:
		return 0, nil, &refusal{after: retryAfter(resp.Header), err: errors.New("too many calls")}
	case resp.StatusCode >= 500:
		return 0, nil, temporary{fmt.Errorf("answered with status %d", resp.StatusCode)}
	}

	return resp.StatusCode, body, nil
}

// envelope is the form of every answer. Some gateways write the code as text.
type envelope struct {
	Result  bool            `json:"result"`
	Code    number          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// The codes of the rate limits of the bus: for the app and for the call.
const (
	codeAppLimit  = 1642902
	codeCallLimit = 1642903
)

// open reads the data of an answer.
func open(status int, body []byte, data any) error {
	e, err := read(status, body)
	switch {
	case err != nil:
		return err
	case !e.Result || e.Code != 0 || status != http.StatusOK:
		return &declined{fmt.Errorf("answered with status %d, code %d: %.*q", status, e.Code, maxMessage, e.Message)}
	}

	if err := json.Unmarshal(e.Data, data); err != nil {
		return fmt.Errorf("answered with data of another form: %w", err)
	}

	return nil
}

// read reads an answer. A refusal by a rate limit is an error.
func read(status int, body []byte) (e envelope, err error) {
	if err := json.Unmarshal(body, &e); err != nil {
		err = fmt.Errorf("answered with status %d and no JSON: %w", status, err)
		if status == http.StatusNotFound { // an older CMDB does not have the call
			err = &declined{err}
		}
		return e, err
	}
	if e.Code == codeAppLimit || e.Code == codeCallLimit {
		return e, &refusal{err: fmt.Errorf("too many calls, code %d", e.Code)}
	}
	return e, nil
}

// retryAfter reads the header Retry-After in seconds; dates are ignored.
func retryAfter(h http.Header) time.Duration {
	secs, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || secs < 0 {
		return 0
	}
	return min(time.Duration(secs)*time.Second, maxPause)
}
