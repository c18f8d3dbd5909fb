package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/notify"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// plane sees everything.
type plane struct{}

func (plane) Sight(*gozzard.Rights) func(gozzard.AgentID, gozzard.HostAddr, string) bool {
	return func(gozzard.AgentID, gozzard.HostAddr, string) bool { return true }
}

func (plane) NotifyEvents() {}

// rig is an engine on a real record.
type rig struct {
	t      *testing.T
	store  *sqlstore.Store
	engine *notify.Engine
	index  *fleet.Index
	admin  gozzard.Caller
}

func newRig(t *testing.T) *rig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "record.db")
	storetest.NewSQLite(t, path)
	store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	admin := gozzard.Caller{App: "admin", User: "me", Rights: gozzard.Everything()}
	index := fleet.New()
	engine, err := notify.New(notify.Options{Store: store, Plane: plane{}, Fleet: index,
		Rights:   func(gozzard.Caller) *gozzard.Rights { return gozzard.Everything() },
		Settings: notify.Settings{Allow: []string{"127.0.0.0/8"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, store: store, engine: engine, index: index, admin: admin}
}

// receiver makes a receiver.
func (r *rig) receiver(v record.Receiver) string {
	r.t.Helper()
	made, err := r.engine.AddReceiver(r.t.Context(), r.admin, v)
	if err != nil {
		r.t.Fatal(err)
	}
	return made.ID
}

func (r *rig) subscribe(spec record.SubscriptionSpec) {
	r.t.Helper()
	if _, err := r.engine.Subscribe(r.t.Context(), r.admin, spec); err != nil {
		r.t.Fatal(err)
	}
}

// run runs the engine until the end of the test, from the events that come now on.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.engine.Run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	r.until("the engine knows where it is", func() bool {
		st, err := r.store.NotifyState(context.Background())
		return err == nil && st.Known
	})
}

func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// happen records events.
func (r *rig) happen(events ...record.Event) {
	r.t.Helper()
	if _, err := r.store.AddEvents(r.t.Context(), events); err != nil {
		r.t.Fatal(err)
	}
}

func event(kind gozzard.EventKind, agent, name, text string) record.Event {
	e := record.Event{Agent: gozzard.AgentID(agent), Event: gozzard.Event{Kind: kind, At: time.Now().UnixMilli(), Message: text}}
	if name != "" {
		e.Key = gozzard.Key{Namespace: "shop", Name: name}
	}
	return e
}

// lose makes hosts that are lost already, so that their alerts do not end by themselves.
func (r *rig) lose(agents ...string) {
	r.t.Helper()
	lost := map[gozzard.AgentID]time.Time{}
	for _, a := range agents {
		r.index.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: gozzard.AgentID(a)}, LastSeen: time.Now()})
		lost[gozzard.AgentID(a)] = time.Now()
	}
	if err := r.store.SaveLost(r.t.Context(), lost, nil); err != nil {
		r.t.Fatal(err)
	}
}

// box keeps what a receiver gets.
type box struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	paths  []string
	answer string
}

func newBox(t *testing.T, answer string) *box {
	b := &box{answer: answer}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bodies, b.paths = append(b.bodies, string(body)), append(b.paths, r.URL.String())
		_, _ = io.WriteString(w, b.answer)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *box) got() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.bodies...)
}

// TestTD31Storm: 10,000 hosts are lost at once, in one group and in a group for each host. The receivers get a few messages
// that count all of them and name the first ones.
func TestTD31Storm(t *testing.T) {
	r := newRig(t)
	one, many := newBox(t, ""), newBox(t, "")
	a := r.receiver(record.Receiver{Name: "one", Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: one.URL}})
	b := r.receiver(record.Receiver{Name: "many", Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: many.URL}})
	r.subscribe(record.SubscriptionSpec{Name: "one", Receivers: []string{a}, Wait: time.Second})
	r.subscribe(record.SubscriptionSpec{Name: "many", Receivers: []string{b}, Wait: time.Second, Interval: time.Second,
		GroupBy: []string{"host"}})

	const hosts = 10_000
	var events []record.Event
	var agents []string
	for i := range hosts {
		agents = append(agents, fmt.Sprintf("agent-%05d", i))
		events = append(events, event(gozzard.EventHostLost, agents[i], "", "the agent is silent"))
	}
	r.lose(agents...)
	r.run()
	for from := 0; from < hosts; from += 1000 {
		r.happen(events[from : from+1000]...)
	}

	// Each message is read once: reading all of them at every look takes longer than the storm.
	read, firing := 0, 0
	arrived := func() bool {
		list := many.got()
		for _, text := range list[read:] {
			var m struct {
				Truncated int               `json:"truncatedAlerts"`
				Alerts    []json.RawMessage `json:"alerts"`
			}
			if err := json.Unmarshal([]byte(text), &m); err != nil || len(m.Alerts) == 0 || len(m.Alerts) > 50 || len(text) > 64<<10 {
				t.Errorf("%d alerts in %d bytes, %v", len(m.Alerts), len(text), err)
			}
			firing += len(m.Alerts) + m.Truncated
		}
		read = len(list)
		return firing >= hosts
	}
	r.until("10,000 hosts by host", arrived)
	if n := len(many.got()); n > 60 {
		t.Errorf("%d messages with a group for each host", n)
	}
	r.until("the first message", func() bool { return len(one.got()) > 0 })
	if n := len(one.got()); n > 5 {
		t.Errorf("%d messages of one group", n)
	}
}

// TestTD31OddReceivers: receivers hang, answer without end, or answer nonsense. Another one still gets its message at once.
func TestTD31OddReceivers(t *testing.T) {
	r := newRig(t)
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}))
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() {
		close(release)
		hangs.CloseClientConnections()
		endless.CloseClientConnections()
		hangs.Close()
		endless.Close()
	})
	nonsense, good := newBox(t, "<html>no robot</html>"), newBox(t, "")

	var ids []string
	for name, v := range map[string]record.Receiver{
		"hangs":    {Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: hangs.URL}},
		"endless":  {Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: endless.URL}},
		"nonsense": {Kind: record.ReceiverWeCom, Settings: record.ReceiverSettings{URL: nonsense.URL}},
		"good":     {Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: good.URL}},
	} {
		v.Name = name
		ids = append(ids, r.receiver(v))
	}
	r.subscribe(record.SubscriptionSpec{Name: "all", Receivers: ids, Wait: time.Second})
	r.run()
	began := time.Now()
	r.happen(event(gozzard.EventCrashLoop, "a", "web", "crash loop"))
	r.until("the good receiver", func() bool { return len(good.got()) == 1 })
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it waited %s", took)
	}
	r.until("the nonsense is no success", func() bool { return len(nonsense.got()) > 1 })
}

// TestRepeatsAndEnds: the same event again is no news, and an end is sent as resolved.
func TestRepeatsAndEnds(t *testing.T) {
	r := newRig(t)
	b := newBox(t, "")
	id := r.receiver(record.Receiver{Name: "b", Kind: record.ReceiverWebhook, Settings: record.ReceiverSettings{URL: b.URL}})
	r.subscribe(record.SubscriptionSpec{Name: "s", Receivers: []string{id}, Wait: time.Second, Interval: time.Second})
	r.lose("a")
	r.run()
	r.happen(event(gozzard.EventHostLost, "a", "", "silent"))
	r.until("the first message", func() bool { return len(b.got()) == 1 })
	r.happen(event(gozzard.EventHostLost, "a", "", "silent"))
	r.happen(event(gozzard.EventHostBack, "a", "", "back"))
	r.until("the end", func() bool { return strings.Contains(strings.Join(b.got(), ""), `"status":"resolved"`) })
	if n := len(b.got()); n != 2 {
		t.Errorf("%d messages: %s", n, b.got())
	}
}
