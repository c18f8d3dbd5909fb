package blueking

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// How a login service is asked.
const (
	verifyTimeout  = 5 * time.Second
	verifyAnswer   = 64 << 10
	verifyAtOnce   = 16
	verifyKeep     = time.Minute     // a login that ended there stays valid here for at most this time
	verifyKeepBad  = 5 * time.Second // after this time an invalid token is asked for again
	maxVerifyCache = 10_000
)

// LoginService asks a BlueKing login service whose login a bk_token is. It caches answers for a short time and is safe
// for concurrent use.
type LoginService struct {
	base  *url.URL
	http  *http.Client
	now   func() time.Time
	slots chan struct{}

	mu     sync.Mutex
	known  map[auth.Digest]verified
	asking map[auth.Digest]*asking
}

type verified struct {
	user  string // "": not valid
	until time.Time
}

// asking is a request on its way. Other callers with the same token wait for its answer.
type asking struct {
	done chan struct{}
	user string
	err  error
}

// NewLoginService makes a LoginService for the address to which ?bk_token=… is added. A nil client means a plain one.
func NewLoginService(address string, c *http.Client) (*LoginService, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a login service, such as "+
			"https://paas.example.com/login/accounts/is_login/", address)
	}
	if c == nil {
		c = &http.Client{}
	}

	own := *c
	own.Timeout = verifyTimeout
	// tokens go to one service only
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &LoginService{base: u, http: &own, now: time.Now, slots: make(chan struct{}, verifyAtOnce),
		known:  map[auth.Digest]verified{},
		asking: map[auth.Digest]*asking{}}, nil
}

// Verify implements auth.TokenVerifier.
func (s *LoginService) Verify(ctx context.Context, token string) (string, error) {
	d := auth.Hash(token)

	// Answer from the cache.
	s.mu.Lock()

	if v, ok := s.known[d]; ok && s.now().Before(v.until) {
		s.mu.Unlock()
		return v.user, nil
	}

	// Join a request for the same token, if there is one.
	q, others := s.asking[d]
	if !others {
		q = &asking{done: make(chan struct{})}
		s.asking[d] = q
	}

	s.mu.Unlock()

	if others {
		select {
		case <-q.done:
			return q.user, q.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}

	// Ask. Other callers wait for this answer, so it does not end when the first caller goes away.
	q.user, q.err = s.ask(context.WithoutCancel(ctx), token)
	s.mu.Lock()
	delete(s.asking, d)

	if q.err == nil {
		s.keep(d, q.user)
	}

	s.mu.Unlock()
	close(q.done)
	return q.user, q.err
}

// keep remembers an answer. The caller holds mu.
func (s *LoginService) keep(d auth.Digest, user string) {
	now := s.now()

	if len(s.known) >= maxVerifyCache {
		for k, v := range s.known {
			if !now.Before(v.until) {
				delete(s.known, k)
			}
		}
	}

	if len(s.known) >= maxVerifyCache {
		clear(s.known) // the limit on requests at a time protects the service
	}

	v := verified{user: user, until: now.Add(verifyKeep)}

	if user == "" {
		v.until = now.Add(verifyKeepBad)
	}

	s.known[d] = v
}

func (s *LoginService) ask(ctx context.Context, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()

	// Limit the requests at a time.
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return "", gozzard.Errorf(gozzard.ErrUnavailable, "the login service is busy")
	}

	// Send the request.
	u := *s.base
	q := u.Query()
	q.Set("bk_token", token)
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("cannot ask the login service: %w", err)
	}

	req.Header.Set("Accept", "application/json")
	res, err := s.http.Do(req)
	if err != nil { // the error contains the URL, and with it the token
		return "", &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "the login service does not answer"}
	}

	// Read the answer.
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, verifyAnswer+1))
	if err != nil || len(body) > verifyAnswer || res.StatusCode >= http.StatusInternalServerError {
		return "", gozzard.Errorf(gozzard.ErrUnavailable, "the login service answers %d and nothing that can be used",
			res.StatusCode)
	}

	return loginName(res.StatusCode, body)
}

// loginName reads the answer, in the forms of the login pages (username) and of the service bus (bk_username).
func loginName(status int, body []byte) (string, error) {
	var a struct {
		Result *bool `json:"result"`
		Code   any   `json:"code"`
		Data   struct {
			BKUsername string `json:"bk_username"`
			Username   string `json:"username"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		var partial struct {
			Result *bool `json:"result"`
		}
		// "data" has another form in a refusal
		if json.Unmarshal(body, &partial) == nil && partial.Result != nil && !*partial.Result {
			return "", nil
		}
		return "", gozzard.Errorf(gozzard.ErrUnavailable,
			"the login service answers %d and no JSON of the expected form", status)
	}

	zero := a.Code == float64(0) || a.Code == "0" || a.Code == "00"
	if status != http.StatusOK || a.Result != nil && !*a.Result || a.Result == nil && !zero {
		return "", nil
	}
	if a.Data.BKUsername != "" {
		return a.Data.BKUsername, nil
	}

	return a.Data.Username, nil
}
