package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
)

// streamCount counts the open event streams of each caller.
type streamCount struct {
	mu    sync.Mutex
	all   int
	apps  map[string]int
	users map[[2]string]int // by app and user
}

// begin counts one more stream, unless there are too many. end takes it back.
func (c *streamCount) begin(caller gozzard.Caller) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	user := [2]string{caller.App, caller.User}
	switch {
	case c.users[user] >= userStreams:
		return nil, tooManyStreams("of this caller", userStreams)
	case c.apps[caller.App] >= appStreams:
		return nil, tooManyStreams("of app "+caller.App, appStreams)
	case c.all >= maxStreams:
		return nil, tooManyStreams("of all callers", maxStreams)
	}

	if c.apps == nil {
		c.apps, c.users = map[string]int{}, map[[2]string]int{}
	}
	c.all++
	c.apps[caller.App]++
	c.users[user]++
	return func() { c.end(user) }, nil
}

func (c *streamCount) end(user [2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.apps[user[0]]--; c.apps[user[0]] == 0 {
		delete(c.apps, user[0])
	}
	if c.users[user]--; c.users[user] == 0 {
		delete(c.users, user)
	}
}

func tooManyStreams(whose string, limit int) error {
	return &gozzard.Error{Kind: gozzard.ErrRateLimited, Retry: time.Minute, Message: "the limit of event streams " +
		whose + " is reached (" + strconv.Itoa(limit) + "): end one first"}
}

// recheckEvery is how often the credentials of a reader are checked again. Its rights are looked up for every page.
const recheckEvery = time.Second

// readerCheck finds out whether the reader of a stream may still read.
type readerCheck struct {
	a      *api
	r      *http.Request
	caller gozzard.Caller
	last   time.Time
	wake   <-chan struct{} // is closed when accounts change: rights must be asked again at once
}

// changed reports whether accounts changed since the last call.
func (c *readerCheck) changed() bool {
	if c.a.Accounts == nil {
		return false
	}
	before := c.wake
	c.wake = c.a.Accounts.Directory().Changed()
	return c.wake != before
}

// bye sends the last event of a stream whose session of the console ended. Streams of other callers end without it.
func (c *readerCheck) bye(s *stream) error {
	if c.a.cookie(c.r) == "" {
		return nil
	}
	return s.bye()
}

// rights are the present rights of the reader. It fails when the reader has none, or when its credentials are not valid
// any more.
func (c *readerCheck) rights() (*gozzard.Rights, error) {
	if c.a.Rights == nil {
		return c.caller.Rights, nil
	}

	// Check the credentials again, but not as a new request: that would count against the limits.
	if c.changed() || time.Since(c.last) >= recheckEvery {
		c.last = time.Now()
		_, err := c.a.identify(c.r.WithContext(auth.WithGate(c.r.Context(), nil)), false)
		switch gozzard.KindOf(err) {
		case gozzard.ErrUnauthenticated, gozzard.ErrUserForbidden, gozzard.ErrAppForbidden, gozzard.ErrOperatorRequired:
			return nil, err
		}
	}

	rights := c.a.Rights(c.caller)
	if rights == nil || len(rights.Grants) == 0 {
		return nil, gozzard.Errorf(gozzard.ErrUserForbidden, "the reader of this stream has no rights any more")
	}
	return rights, nil
}
