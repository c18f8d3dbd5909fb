package nats_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

// rules counts rejections by their rule.
type rules struct {
	mu sync.Mutex
	n  map[string]int
}

func (r *rules) refused(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[string]int{}
	}
	r.n[rule]++
}

func (r *rules) count(rule string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[rule]
}

func statusBytes() []byte {
	return wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportStatus,
		Statuses: []gozzard.Status{{Key: gozzard.Key{Namespace: "ns", Name: "p"}}}})
}

// greatStatus is about as long as a message may be.
func greatStatus() []byte {
	r := &gozzard.Report{Kind: gozzard.ReportStatus,
		Statuses: []gozzard.Status{{Key: gozzard.Key{Namespace: "ns", Name: "p"}}}}
	r.Statuses[0].Message = strings.Repeat("m", nats.MaxMessage-1000)
	return wire.AppendReport(nil, r)
}

// pour publishes as fast as it can until the connection is closed. It returns the number of messages.
func pour(t *testing.T, a *attacker, subject string, data []byte) (sent int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); sent++ {
		if err := a.Publish(subject, data); err != nil || sent%1000 == 0 && !a.IsConnected() {
			return sent
		}
	}
	t.Fatalf("%d messages to %s, and the connection is still open", sent, subject)
	return sent
}

// TestTD3HonestBurst: no report is dropped when 2,000 processes of a host change at once, with one message each.
func TestTD3HonestBurst(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive})
	l := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "busy"})
	eventually(t, "the link", l.isUp)
	message := strings.Repeat("m", 1000)
	for i := range 2000 {
		key := gozzard.Key{Namespace: "ns", Name: fmt.Sprintf("p%d", i)}
		for _, r := range []*gozzard.Report{
			{Kind: gozzard.ReportResults, Results: []gozzard.OpReport{{Phase: gozzard.PhaseDone,
				Outcome: gozzard.Outcome{Message: message}}}},
			{Kind: gozzard.ReportStatus, Statuses: []gozzard.Status{{Key: key, Message: message}}},
		} {
			if err := l.Send(r); err != nil {
				t.Fatal(err)
			}
		}
	}

	eventually(t, "all of it", func() bool { return len(in.all()) == 4000 })

	if s := h.Stats(); s.Flooded != 0 || h.Flag("busy") != "" {
		t.Errorf("%d were dropped, flag %q", s.Flooded, h.Flag("busy"))
	}
}

// TestTD3StatusGoesFirst: the results of an agent at its limit are still accepted.
func TestTD3StatusGoesFirst(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive, Limits: nats.Limits{Messages: 1e-6, MessageBurst: 100}})
	a := attack(t, b, "0.a")
	result := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportResults})
	for i := range 150 {
		subject, data := "st.0.a", statusBytes()
		if i >= 90 && i < 115 {
			subject, data = "res.0.a", result
		}
		if err := a.Publish(subject, data); err != nil {
			t.Fatal(err)
		}
		if i == 89 { // status and results have different subscriptions
			eventually(t, "the status", func() bool { return h.Stats().Statuses == 90 })
		}
	}

	eventually(t, "all of it", func() bool {
		s := h.Stats()
		return s.Statuses == 125 && s.Results == 25 && len(in.all()) == 100
	})

	if s := h.Stats(); s.Flooded != 50 {
		t.Errorf("%d were dropped", s.Flooded)
	}
}

// TestTD3AnswersAreNoFlood: answers to requests of the server do not count against the limits.
func TestTD3AnswersAreNoFlood(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive,
		Limits: nats.Limits{Messages: 1e-6, MessageBurst: 40, Bytes: 1e-6, ByteBurst: 4 << 20}})
	var self atomic.Pointer[end]
	log := strings.Repeat("l", 256<<10)
	l := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "asked", Command: func(*gozzard.Command) {
		if err := self.Load().Send(&gozzard.Report{Kind: gozzard.ReportLogs,
			Logs: &gozzard.LogChunk{Data: []byte(log)}}); err != nil {
			t.Error(err)
		}
	}})

	self.Store(l)
	eventually(t, "the link", l.isUp)

	for i := range 100 {
		if err := h.Send("asked", 0, &gozzard.Command{Kind: gozzard.CommandLogs}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the answer", func() bool { return len(in.all()) == i+1 })
	}

	if s := h.Stats(); s.Flooded != 0 || h.Flag("asked") != "" {
		t.Errorf("%d were dropped, flag %q", s.Flooded, h.Flag("asked"))
	}
}

// TestTD3FloodIsPutOut: an agent that floods is muted, flagged and banned, on its subjects and on any others. Another
// agent loses nothing. The limits are a tenth of the default ones: on a machine that does much else, one connection cannot
// exceed those.
func TestTD3FloodIsPutOut(t *testing.T) {
	for name, c := range map[string]struct {
		subject string
		data    []byte
	}{
		"status":             {"st.0.evil", statusBytes()},
		"results":            {"res.0.evil", wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportResults})},
		"great messages":     {"st.0.evil", greatStatus()},
		"another's subject":  {"st.0.good", statusBytes()},
		"no agent's subject": {"anything", nil},
		"empty ones":         {"res.0.evil", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r rules
			b, err := nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", Secret: secret, Refused: r.refused})
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(b.Close)
			var in inbox
			var lines logLines
			limits := nats.DefaultLimits()
			limits.Messages, limits.MessageBurst = limits.Messages/10, limits.MessageBurst/10
			limits.Bytes, limits.ByteBurst = limits.Bytes/10, limits.ByteBurst/10
			h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive, Refused: r.refused, Log: lines.logger(),
				Limits: limits})
			good := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "good"})
			eventually(t, "the good one", good.isUp)
			a := attack(t, b, "0.evil")
			a.Opts.AllowReconnect = false
			sent := pour(t, a, c.subject, c.data)
			eventually(t, "the end of the connection", a.IsClosed)

			if flag := h.Flag("evil"); !strings.Contains(flag, "muted until") {
				t.Errorf("flag %q", flag)
			}
			if _, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo("0.evil", secret),
				natsgo.Timeout(patience)); !errors.Is(err, natsgo.ErrAuthorization) {
				t.Errorf("it connects again: %v", err)
			}

			if r.count(nats.RuleFlood)+r.count(nats.RuleMalformed) == 0 || r.count(nats.RuleBanned) == 0 {
				t.Errorf("counted %v", r.n)
			}
			if good.upCount() != 1 || h.Flag("good") != "" {
				t.Errorf("the good one connected %d times, flag %q", good.upCount(), h.Flag("good"))
			}
			if err := good.Send(&gozzard.Report{Kind: gozzard.ReportResults, Session: 7}); err != nil {
				t.Error(err)
			}

			eventually(t, "the report of the good one", func() bool {
				for _, m := range in.all() {
					if m.from == "good" && m.Session == 7 {
						return true
					}
				}
				return false
			})

			eventually(t, "a line in the log", func() bool { return lines.count("sender=0.evil") > 0 })
			if n := lines.count("sender=0.evil"); n > 3 {
				t.Errorf("logged %d times", n)
			}

			t.Logf("%d messages sent, %d came in, %d dropped unread", sent, h.Stats().Results+h.Stats().Statuses,
				h.Stats().Flooded)
		})
	}
}

// TestTD3ComesAgain: an agent can connect again when its ban ends, and its offence stays visible.
func TestTD3ComesAgain(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive, Limits: nats.Limits{Mute: time.Second}})
	a := attack(t, b, "0.evil")
	a.Opts.AllowReconnect = false
	pour(t, a, "st.0.evil", statusBytes())
	eventually(t, "the end of the connection", a.IsClosed)

	eventually(t, "the end of its time", func() bool {
		conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo("0.evil", secret))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})

	if flag := h.Flag("evil"); !strings.Contains(flag, "was muted at") {
		t.Errorf("afterwards the flag is %q", flag)
	}
}

// TestB3TenUnreadableMessages: ten messages that cannot be decoded end the session, nine do not. Messages of a newer
// protocol do not count.
func TestB3TenUnreadableMessages(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	var r rules
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive, Refused: r.refused})
	a := attack(t, b, "0.odd")
	a.Opts.AllowReconnect = false
	for range 30 {
		if err := a.Publish("res.0.odd", []byte{1 << 3, gozzard.ProtocolVersion + 1}); err != nil {
			t.Fatal(err)
		}
	}

	for range 9 {
		if err := a.Publish("res.0.odd", []byte{0xff}); err != nil {
			t.Fatal(err)
		}
	}

	eventually(t, "all to be counted", func() bool { s := h.Stats(); return s.Newer == 30 && s.Malformed == 9 })

	if err := a.Flush(); err != nil || h.Flag("odd") != "" {
		t.Fatalf("after nine: %v, %q", err, h.Flag("odd"))
	}
	if err := a.Publish("st.0.odd", []byte{0xff}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the end of the connection", a.IsClosed)

	if flag := h.Flag("odd"); !strings.Contains(flag, "cannot be read") {
		t.Errorf("flag %q", flag)
	}
	if n := r.count(nats.RuleMalformed); n != 10 {
		t.Errorf("counted %d times", n)
	}
}
