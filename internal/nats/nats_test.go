package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef0123456789abcdef"

// patience is how long a test waits for a condition. On an idle machine all conditions hold at once.
const patience = 30 * time.Second

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func broker(t testing.TB, listen string) *nats.Broker {
	t.Helper()
	b, err := nats.StartBroker(nats.BrokerOptions{Listen: listen, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

type received struct {
	from  gozzard.AgentID
	cloud int
	*gozzard.Report
}

// inbox collects the reports of a hub.
type inbox struct {
	mu      sync.Mutex
	reports []received
	bad     map[gozzard.AgentID]error
}

func (i *inbox) receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reports = append(i.reports, received{from, cloud, r})
}

func (i *inbox) malformed(from gozzard.AgentID, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bad == nil {
		i.bad = make(map[gozzard.AgentID]error)
	}
	i.bad[from] = err
}

func (i *inbox) all() []received {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]received(nil), i.reports...)
}

func hub(t testing.TB, o nats.HubOptions) *nats.Hub {
	t.Helper()
	h, err := nats.NewHub(o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, h.Run)
	return h
}

// run calls f with a context that ends with the test, or when the returned function is called.
func run(t testing.TB, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// end is a link and the calls that it made.
type end struct {
	*nats.Link
	stop func()

	mu       sync.Mutex
	ups      int
	up       bool
	commands []*gozzard.Command
}

func link(t testing.TB, o nats.LinkOptions) *end {
	t.Helper()
	e := new(end)
	o.Secret = secret
	onCommand := o.Command
	o.Command = func(c *gozzard.Command) {
		e.mu.Lock()
		e.commands = append(e.commands, c)
		e.mu.Unlock()
		if onCommand != nil {
			onCommand(c)
		}
	}

	o.Up = func() { e.turned(t, true) }
	o.Down = func() { e.turned(t, false) }
	l, err := nats.NewLink(o)
	if err != nil {
		t.Fatal(err)
	}

	e.Link = l
	e.stop = run(t, l.Run)
	return e
}

func (e *end) turned(t testing.TB, up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.up == up {
		t.Errorf("called twice in a row with up %v", up)
	}
	if e.up = up; up {
		e.ups++
	}
}

func (e *end) isUp() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

func (e *end) upCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ups
}

func (e *end) got() []*gozzard.Command {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*gozzard.Command(nil), e.commands...)
}

// ways runs a test over both ways to connect to a broker.
func ways(t *testing.T, f func(t *testing.T, b *nats.Broker, o nats.LinkOptions)) {
	t.Run("tcp", func(t *testing.T) {
		b := broker(t, "127.0.0.1:0")
		f(t, b, nats.LinkOptions{URL: "nats://" + b.Addr()})
	})
	t.Run("in process", func(t *testing.T) {
		b := broker(t, "")
		if b.Addr() != "" {
			t.Errorf("a broker that does not listen has the address %q", b.Addr())
		}
		f(t, b, nats.LinkOptions{Broker: b})
	})
}

func agentID(n int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%03d", n)) }

// logLines collects log lines.
type logLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
