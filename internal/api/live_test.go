package api_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/live"
)

// liveRig is an API with live data and one caller, whose rights a test changes.
type liveRig struct {
	*server
	t      *testing.T
	rights atomic.Pointer[gozzard.Rights]
	http   *httptest.Server
}

func newLiveRig(t *testing.T) *liveRig {
	t.Helper()
	r := &liveRig{server: newServer(t), t: t}
	r.rights.Store(gozzard.Everything())
	hub := live.New(live.Options{Fleet: r.plane.Index})
	rights := func(gozzard.Caller) *gozzard.Rights { return r.rights.Load() }
	r.handler = api.New(api.Options{Plane: r.plane, Live: hub, Rights: rights,
		Authenticate: func(*http.Request) (gozzard.Caller, error) {
			return gozzard.Caller{App: "app", User: "me", Rights: r.rights.Load()}, nil
		}})

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hub.Run(ctx) })
	r.http = httptest.NewServer(r.handler)
	t.Cleanup(func() { r.http.CloseClientConnections(); r.http.Close(); cancel(); wg.Wait() })
	return r
}

func (r *liveRig) snapshot() *client.LiveTable {
	r.t.Helper()
	table, err := client.ParseLiveSnapshot([]byte(r.call(http.MethodGet, "/api/v1/live/snapshot", "").body))
	if err != nil {
		r.t.Fatal(err)
	}
	return table
}

// follow opens a stream and gives its lines. The channel is closed when the stream ends.
func (r *liveRig) follow(table *client.LiveTable) <-chan string {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/api/v1/live/stream?epoch=%s&after=%d", r.http.URL, table.Epoch, table.Seq), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := r.http.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("the stream answers %s", res.Status)
	}

	lines := make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	r.t.Cleanup(func() { cancel(); <-ended; _ = res.Body.Close() })
	return lines
}

// await reads lines until one begins with a text; "" waits for the end of the stream.
func (r *liveRig) await(lines <-chan string, begin string) string {
	r.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case l, open := <-lines:
			if !open && begin == "" || open && begin != "" && strings.HasPrefix(l, begin) {
				return l
			}
			if !open {
				r.t.Fatalf("the stream ended before %q", begin)
			}
		case <-limit:
			r.t.Fatalf("%q did not come within a minute", begin)
		}
	}
}

func spaceRights(name string) *gozzard.Rights {
	return &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{name},
		Hosts: gozzard.HostsAny}}}
}

// TestLiveRights: a stream follows the rights of its caller. Other rights need a new snapshot; without rights it ends.
func TestLiveRights(t *testing.T) {
	r := newLiveRig(t)
	table := r.snapshot()
	if len(table.Rows) != 9 || len(table.Hosts.Agent) != 3 {
		t.Fatalf("%d rows on %d hosts, want 9 on 3", len(table.Rows), len(table.Hosts.Agent))
	}
	lines := r.follow(table)
	r.plane.SetOnline("a1", false, time.Unix(1700000001, 0))
	r.await(lines, "event: changes")
	if data := r.await(lines, "data: "); !strings.Contains(data, `"online":[[`) {
		t.Errorf("the change of a host is not in %s", data)
	}
	r.happen("a1", 1, "web", gozzard.EventExited)
	r.await(lines, "event: events")

	r.rights.Store(spaceRights("shop"))
	r.await(lines, "event: resnapshot")
	if data := r.await(lines, "data: "); data != `data: {"reason":"rights"}` {
		t.Errorf("the reason is %s", data)
	}
	r.await(lines, "")

	narrow := r.snapshot()
	for _, name := range narrow.Names.Space {
		if name != "shop" {
			t.Errorf("a viewer of shop gets the namespace %s", name)
		}
	}
	if len(narrow.Rows) != 6 {
		t.Errorf("a viewer of shop gets %d rows, want 6", len(narrow.Rows))
	}
	body := fmt.Sprintf(`{"epoch":%q,"ids":[0]}`, table.Epoch)
	if a := r.call(http.MethodPost, "/api/v1/live/rows", body); a.code != http.StatusConflict {
		t.Errorf("the epoch of other rights answers %d %s", a.code, a.body)
	}

	// The old epoch is of other rights, so the stream does not go on with it.
	r.await(r.follow(table), "event: resnapshot")
	lines = r.follow(narrow)
	r.rights.Store(&gozzard.Rights{})
	r.await(lines, "")
}

// TestLiveInput: what callers send is checked and bounded.
func TestLiveInput(t *testing.T) {
	r := newLiveRig(t)
	table := r.snapshot()
	for _, path := range []string{"?after=x", "?after=-1", "?events=1.5", "?odd=1", "?after=99999999999999999999999"} {
		if a := r.call(http.MethodGet, "/api/v1/live/stream"+path, ""); a.code != http.StatusBadRequest {
			t.Errorf("stream%s: %d %s", path, a.code, a.body)
		}
	}
	if a := r.call(http.MethodGet, "/api/v1/live/stream?epoch=x", "", header("Last-Event-ID", "y")); a.code != http.StatusBadRequest {
		t.Errorf("a bad Last-Event-ID: %d %s", a.code, a.body)
	}
	many := strings.Repeat("1,", client.MaxLiveRows) + "1"
	for _, body := range []string{`{"epoch":"` + table.Epoch + `","ids":[` + many + `]}`, `{"ids":[-1]}`, `{"ids":"all"}`,
		`{"ids":[4294967296]}`, `[]`, `{"odd":1}`, ``} {
		if a := r.call(http.MethodPost, "/api/v1/live/rows", body); a.code != http.StatusBadRequest {
			t.Errorf("rows %.60s: %d %s", body, a.code, a.body)
		}
	}

	for accept, packed := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false,
		"gzip; q=0.000": false, "identity": false} {
		a := r.call(http.MethodGet, "/api/v1/live/snapshot", "", header("Accept-Encoding", accept))
		var body io.Reader = strings.NewReader(a.body)
		if got := a.header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: compressed is %t", accept, got)
		} else if got {
			unpacked, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacked
		}
		if data, err := io.ReadAll(body); err != nil || !strings.HasPrefix(string(data), client.LiveMagic) {
			t.Errorf("Accept-Encoding %q: %v, %.8q", accept, err, data)
		}
	}
}

// TestLiveLimit: one user cannot hold more than 20 streams.
func TestLiveLimit(t *testing.T) {
	r := newLiveRig(t)
	table := r.snapshot()
	for range 20 {
		r.follow(table)
	}
	path := "/api/v1/live/stream?epoch=" + table.Epoch
	if a := r.call(http.MethodGet, path, ""); a.code != http.StatusTooManyRequests {
		t.Errorf("stream 21 of a user: %d %s", a.code, a.body)
	}
}

// frames is the answer of a live stream. It keeps the parts in which batches of changes are written.
type frames struct {
	header http.Header
	parts  chan []byte
}

func (f *frames) Header() http.Header { return f.header }
func (f *frames) WriteHeader(int)     {}
func (f *frames) Flush()              {}

func (f *frames) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), "event: changes\n") {
		f.parts <- p
	}
	return len(p), nil
}

// TestLiveShares: viewers with equal rights get the same memory, so that a large batch does not exist once for each of them.
func TestLiveShares(t *testing.T) {
	r := newLiveRig(t)
	table := r.snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()

	path := fmt.Sprintf("/api/v1/live/stream?epoch=%s&after=%d", table.Epoch, table.Seq)
	var viewers []*frames
	for range 2 {
		f := &frames{header: http.Header{}, parts: make(chan []byte, 1000)}
		viewers = append(viewers, f)
		wg.Go(func() { r.handler.ServeHTTP(f, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)) })
	}
	r.plane.SetOnline("a1", false, time.Unix(1700000001, 0))

	var got [2][]byte
	for i, f := range viewers {
		select {
		case got[i] = <-f.parts:
		case <-time.After(time.Minute):
			t.Fatal("no batch came within a minute")
		}
	}
	if &got[0][0] != &got[1][0] {
		t.Errorf("two viewers got copies of one batch")
	}
}
