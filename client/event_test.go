package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

func TestEventsAreAsked(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/events" || q.Get("since") != "1700000000000" || q.Get("limit") != "7" ||
			!slices.Equal(q["name"], []string{"a b", "c*"}) || q.Get("kind") != "exited" {
			t.Errorf("asked %s", r.URL)
		}
		_, _ = w.Write([]byte(`{"events":[{"id":5,"host":{"agent":"a1","ip":"10.0.0.1"},"namespace":"shop","name":"web","kind":"exited","at":"2023-11-14T22:13:20.001Z","code":-1,"signal":"SIGSEGV","core":true}],"next":9}`))
	})

	page, err := c.Events(t.Context(), client.EventQuery{Names: []string{"a b", "c*"}, Kinds: []string{"exited"},
		Since: time.Unix(1700000000, 0)}, 7)
	if err != nil || page.Next != 9 || len(page.Events) != 1 || page.Events[0].Signal != "SIGSEGV" ||
		!page.Events[0].Core {
		t.Errorf("%+v, %v", page, err)
	}
}

// After a break, also in the middle of an event, the stream continues where it was. The caller gets an error if events may be missing. An error that
// cannot pass ends the stream.
func TestFollowingGoesOn(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		switch len(asked) {
		case 1:
			fmt.Fprint(w, ": \n\nid: 11\ndata: {\"id\":11,\"name\":\"web\"}\n\nid: 12\ndata: {\"id\":12,\"na")
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			fmt.Fprint(w, "event: lost\ndata: {}\n\nid: 40\ndata: {\"id\":40}\n\nid: 41\ndata: {\"id\":41}\n\n")
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})

	var ids []uint64
	var errs []error
	for e, err := range c.FollowEvents(t.Context(), client.EventQuery{Names: []string{"web"}}, 10) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, e.ID)
	}

	if !slices.Equal(ids, []uint64{11, 40, 41}) || !slices.Equal(asked, []string{"10", "11", "11", "41"}) {
		t.Errorf("events %v, asked behind %v", ids, asked)
	}
	if len(errs) != 5 || !errors.Is(errs[2], client.ErrEventsLost) ||
		gozzard.KindOf(errs[0]) != gozzard.ErrUnavailable || gozzard.KindOf(errs[4]) != gozzard.ErrUserForbidden {
		t.Errorf("%v", errs)
	}
}

func TestFollowingEnds(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "id: 1\ndata: {\"id\":1}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	for _, err := range c.FollowEvents(ctx, client.EventQuery{}, 0) {
		if err != nil {
			t.Error(err)
		}
		cancel()
	}

	for range c.FollowEvents(t.Context(), client.EventQuery{}, 0) {
		break
	}

	odd := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: what\n\n") })
	n := 0
	for _, err := range odd.FollowEvents(t.Context(), client.EventQuery{}, 0) {
		if gozzard.KindOf(err) != gozzard.ErrInternal {
			t.Error(err)
		}
		n++
	}

	if n != 1 {
		t.Errorf("%d times", n)
	}
}

func TestLogIsAsked(t *testing.T) {
	var urls []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		urls = append(urls, r.URL.RequestURI())
		_, _ = w.Write([]byte(`{"text":"a\n","offset":3,"next":5}`))
	})

	key := gozzard.Key{Namespace: "shop", Name: "web"}
	chunk, err := c.Log(t.Context(), key, "0:10.0.0.1", 20, -1)
	if err != nil || chunk != (client.LogChunk{Text: "a\n", Offset: 3, Next: 5}) {
		t.Errorf("%+v, %v", chunk, err)
	}

	_, _ = c.Log(t.Context(), key, "a1", 0, 5)
	want := []string{"/api/v1/logs?host=0%3A10.0.0.1&lines=20&name=web&namespace=shop",
		"/api/v1/logs?host=a1&name=web&namespace=shop&offset=5"}
	if !slices.Equal(urls, want) {
		t.Errorf("%v", urls)
	}
}
