package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

func (s *server) happen(agent gozzard.AgentID, seq uint64, name string, kind gozzard.EventKind) {
	s.plane.record(record.Event{Agent: agent, Addr: at(0, "10.0.0.1"), Event: gozzard.Event{
		Key: gozzard.Key{Namespace: "shop", Name: name}, Kind: kind,
		At: 1_700_000_000_000 + int64(seq)*1000, PID: 7, Code: 3, Message: "line\nbreak",
	}})
}

func TestEventsAreListed(t *testing.T) {
	s := newServer(t)
	s.happen("a1", 1, "web", gozzard.EventExited)
	s.happen("a2", 1, "web", gozzard.EventStarted)
	s.happen("a1", 2, "worker", gozzard.EventExited)

	for path, want := range map[string]int{
		"": 3, "?name=web": 2, "?name=w*&kind=exited": 2, "?host=a2": 1, "?host=host-a2": 1, "?host=HOST-A2": 1, "?host=0:10.0.0.2": 1, "?host=nobody": 0,
		"?namespace=other": 0, "?limit=1": 1,
		"?since=1700000002000": 1, "?since=2023-11-14T22:13:22Z": 1,
	} {
		r := s.call(http.MethodGet, "/api/v1/events"+path, "")
		var body struct {
			Events []struct{ ID int64 }
			Next   uint64
		}
		if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.code != http.StatusOK ||
			len(body.Events) != want || body.Next == 0 {
			t.Errorf("%s: %d %v, want %d of %s", path, r.code, err, want, r.body)
		}
	}

	for _, path := range []string{"?since=yesterday", "?limit=0", "?kind=", "?kind=nonsense", "?name=a%5Cb", "?odd=1", "?host=a%2Fb"} {
		if r := s.call(http.MethodGet, "/api/v1/events"+path, ""); r.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, r.code, r.body)
		}
	}

	if r := s.call(http.MethodGet, "/api/v1/events", "",
		func(r *http.Request) { r.Header.Del("X-Bkapi-Authorization") }); r.code != http.StatusUnauthorized {
		t.Errorf("without credentials: %d", r.code)
	}
}

// open follows the stream and gives its lines.
func (s *server) open(t *testing.T, path, last string) (lines chan string, stop func()) {
	t.Helper()
	srv := httptest.NewServer(s.handler)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/v1/events/stream"+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("X-Bkapi-Authorization", `{"bk_app_code":"app","bk_app_secret":"`+secret+`","bk_username":"me"}`)

	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", res.Status, res.Header.Get("Content-Type"))
	}

	lines = make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			if sc.Text() != "" && sc.Text() != ": " {
				lines <- sc.Text()
			}
		}
	}()

	return lines, func() {
		cancel()
		<-ended
		_ = res.Body.Close()
		srv.Close()
	}
}

func next(t *testing.T, lines chan string) string {
	t.Helper()
	select {
	case l := <-lines:
		return l
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		return ""
	}
}

func TestEventsAreStreamed(t *testing.T) {
	s := newServer(t)
	s.happen("a1", 1, "web", gozzard.EventExited)
	before := s.ring.Last()
	lines, stop := s.open(t, "?name=web", "")
	s.happen("a1", 2, "worker", gozzard.EventExited)
	s.happen("a1", 3, "web", gozzard.EventStarted)

	if id, data := next(t, lines), next(t, lines); id != fmt.Sprint("id: ", before+2) ||
		!strings.Contains(data, `"kind":"started"`) || !strings.Contains(data, `line\nbreak`) {
		t.Errorf("%s\n%s", id, data)
	}

	stop()
	// A client that was disconnected continues without a gap.
	lines, stop = s.open(t, "", fmt.Sprint(before))
	for i := range uint64(2) {
		if id := next(t, lines); id != fmt.Sprint("id: ", before+1+i) {
			t.Errorf("went on with %s", id)
		}
		next(t, lines)
	}

	stop()

	// A client that was disconnected for too long gets an event that says so. The ring of this test has 50 places.
	for i := range uint64(60) {
		s.happen("a1", 10+i, "web", gozzard.EventExited)
	}

	lines, stop = s.open(t, "", fmt.Sprint(before))
	if l := next(t, lines); l != "event: lost" {
		t.Errorf("began with %s", l)
	}

	stop()

	if r := s.call(http.MethodGet, "/api/v1/events/stream", "",
		func(r *http.Request) { r.Header.Set("Last-Event-ID", "x") }); r.code != http.StatusBadRequest {
		t.Errorf("a bad id: %d", r.code)
	}
}

func TestLogIsRead(t *testing.T) {
	s := newServer(t)
	var asked gozzard.LogQuery
	s.plane.log = func(to gozzard.Target, q gozzard.LogQuery) (gozzard.LogChunk, error) {
		asked = q
		if to.Agent != "a1" && to.Addr != at(0, "10.0.0.1") {
			return gozzard.LogChunk{}, gozzard.Errorf(gozzard.ErrUnavailable, "the agent is offline")
		}
		return gozzard.LogChunk{Data: []byte("a\xff网\xe7\xbd"), Offset: 10, Next: 17}, nil
	}

	r := s.call(http.MethodGet, "/api/v1/logs?namespace=shop&name=web&host=a1", "")
	if r.code != http.StatusOK || strings.TrimSpace(r.body) != `{"text":"a`+"\uFFFD"+`网","offset":10,"next":15}` ||
		asked.Lines != 100 || asked.Offset != -1 {
		t.Errorf("%d %s, asked %+v", r.code, r.body, asked)
	}

	s.call(http.MethodGet, "/api/v1/logs?namespace=shop&name=web&host=0:10.0.0.1&offset=15&lines=3", "")

	if asked.Offset != 15 || asked.Lines != 3 || asked.Key.Name != "web" {
		t.Errorf("asked %+v", asked)
	}

	for path, code := range map[string]int{
		"?namespace=shop&name=web": 400, "?name=web&host=a1": 400, "?namespace=shop&name=../x&host=a1": 400,
		"?namespace=shop&name=web&host=a1&lines=0": 400,
		"?namespace=shop&name=web&host=a1&host=a2": 400, "?namespace=shop&name=web&host=a1&offset=-5": 400,
		"?namespace=shop&name=web&host=a2": 503,
	} {
		if r := s.call(http.MethodGet, "/api/v1/logs"+path, ""); r.code != code {
			t.Errorf("%s: %d %s", path, r.code, r.body)
		}
	}
}
