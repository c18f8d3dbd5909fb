package nats_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

// attacker is a bare client that has the join secret and the name of one agent.
type attacker struct {
	*natsgo.Conn
	mu     sync.Mutex
	denied []string
}

func attack(t *testing.T, b *nats.Broker, user string) *attacker {
	t.Helper()
	a := new(attacker)
	conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo(user, secret), natsgo.ErrorHandler(
		func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.denied = append(a.denied, err.Error())
		}))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(conn.Close)
	a.Conn = conn
	return a
}

// deniedCount is how many requests the broker rejected. It waits until all requests are answered.
func (a *attacker) deniedCount(t *testing.T) int {
	t.Helper()

	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, d := range a.denied {
		if strings.Contains(d, "permissions violation") || strings.Contains(d, "Permissions Violation") {
			n++
		}
	}

	return n
}

func TestTS6AnAgentCannotPublishAsAnother(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive})
	victim := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "victim"})
	eventually(t, "the victim", victim.isUp)
	a := attack(t, b, "0.evil")
	forged := wire.AppendReport(nil, &gozzard.Report{Kind: gozzard.ReportResults})
	order := wire.AppendCommand(nil, &gozzard.Command{Kind: gozzard.CommandGreet})
	subjects := []string{
		"res.0.victim", "st.0.victim", "res.1.evil", "st.1.evil", "res.0.evil.more", "res.0", "op.0.victim",
		"op.0.evil", "ev.0.evil",
		"_INBOX.x", "$SYS.REQ.SERVER.PING", "$JS.API.INFO", "anything",
	}
	for i, s := range subjects {
		if err := a.Publish(s, order); err != nil {
			t.Fatal(err)
		}
		if err := a.PublishRequest(s, "op.0.victim", forged); err != nil {
			t.Fatal(err)
		}
		eventually(t, s+" to be refused", func() bool { return a.deniedCount(t) == 2*(i+1) })
	}

	// On its subject it may publish, with any reply subject: the hub answers to none.
	if err := a.PublishRequest("res.0.evil", "op.0.victim", forged); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the only report", func() bool { return len(in.all()) == 1 })

	if r := in.all()[0]; r.from != "evil" {
		t.Errorf("report came from %s", r.from)
	}
	// The next command of the victim is from the hub: no other one came before.
	if err := h.Send("victim", 0, &gozzard.Command{Kind: gozzard.CommandAck}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "our command", func() bool { return len(victim.got()) > 0 })

	if got := victim.got(); len(got) != 1 || got[0].Kind != gozzard.CommandAck {
		t.Errorf("the victim got %+v", got)
	}
}

func TestAnAgentCannotListenToOthers(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	h := hub(t, nats.HubOptions{Broker: b, Receive: new(inbox).receive})
	a := attack(t, b, "0.evil")
	var heard []string
	var mu sync.Mutex
	listen := func(m *natsgo.Msg) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, m.Subject)
	}

	n := 0
	for _, s := range []string{
		">", "*.>", "*.*.*", "op.>", "op.*.*", "op.0.*", "op.0.victim", "op.*.evil", "op.1.evil", "res.>", "st.>",
		"res.0.evil", "st.0.evil",
		"_INBOX.>", "_INBOX.x", "$SYS.>", "$JS.>", "$JS.API.>", "op.0.evil.>",
	} {
		for _, queue := range []string{"", "workers", "op.0.evil", ">", "*"} {
			var err error
			if queue == "" {
				_, err = a.Subscribe(s, listen)
			} else {
				_, err = a.QueueSubscribe(s, queue, listen)
			}
			if errors.Is(err, natsgo.ErrBadQueueName) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
			eventually(t, s+" in "+queue+" to be refused", func() bool { return a.deniedCount(t) == n })
		}
	}

	victim := link(t, nats.LinkOptions{URL: b.Addr(), Agent: "victim"})
	eventually(t, "the victim", victim.isUp)

	if err := h.Send("victim", 0, &gozzard.Command{Kind: gozzard.CommandAck}); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the command", func() bool { return len(victim.got()) == 1 })

	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}

	mu.Lock()
	defer mu.Unlock()

	if len(heard) != 0 {
		t.Errorf("heard %q", heard)
	}
}

func TestCredentials(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	for _, c := range []struct{ user, password string }{
		{"", ""}, {"", secret}, {"0.a", ""}, {"0.a", secret[1:]}, {"0.a", secret + "x"},
		{"0.a", strings.Repeat("x", 32)},
		{"hub", secret}, {"hub", ""}, {"a", secret}, {".a", secret}, {"0.", secret}, {"0.*", secret}, {"0.>", secret},
		{"*.a", secret},
		{"0.a.b", secret}, {"-1.a", secret}, {"00.a", secret}, {"+0.a", secret}, {"0x1.a", secret},
		{"9999999999999999999999.a", secret},
		{"0." + strings.Repeat("a", 65), secret}, {"0.a b", secret}, {"0.ä", secret},
	} {
		conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo(c.user, c.password))
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, natsgo.ErrAuthorization) {
			t.Errorf("%q with %q: got %v", c.user, c.password, err)
		}
	}

	conn, err := natsgo.Connect("nats://"+b.Addr(), natsgo.UserInfo("0.a", secret))
	if err != nil {
		t.Fatalf("the right one: %v", err)
	}

	conn.Close()
}

func TestBrokerNeedsASecret(t *testing.T) {
	for _, s := range []string{"", secret[1:]} {
		b, err := nats.StartBroker(nats.BrokerOptions{Secret: s})
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "at least 32 bytes") {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

func TestWrongSecretIsLogged(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var lines logLines
	l, err := nats.NewLink(nats.LinkOptions{
		URL: b.Addr(), Agent: "a", Secret: "wrong", Log: lines.logger(), Command: func(*gozzard.Command) {},
		Up: func() { t.Error("up with a wrong secret") },
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, l.Run)
	eventually(t, "the log", func() bool { return lines.count("rejects this agent's join secret") > 0 })

	if n := lines.count("wrong"); n != 0 {
		t.Error("the secret is in the log")
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:4222", "10.0.0.1:4222", "example.com:4222",
		"[fe80::1%lo]:4222", "localhost.example.com:1"} {
		b, err := nats.StartBroker(nats.BrokerOptions{Listen: addr, Secret: secret})
		if err == nil {
			b.Close()
		}
		want := "agents can only be served on loopback until enrolment and TLS are set up: " + addr +
			" is not a loopback address"
		if err == nil || err.Error() != want {
			t.Errorf("broker on %s: got %v", addr, err)
		}
		for _, url := range []string{addr, "nats://" + addr} {
			_, err = nats.NewLink(nats.LinkOptions{URL: url, Agent: "a", Secret: secret,
				Command: func(*gozzard.Command) {}})
			if err == nil || !strings.Contains(err.Error(), "loopback") &&
				!strings.Contains(err.Error(), "invalid URL escape") {
				t.Errorf("link to %s: got %v", url, err)
			}
		}
	}

	for _, url := range []string{
		"tls://127.0.0.1:1", "ws://127.0.0.1:1", "nats://u:p@127.0.0.1:1", "nats://127.0.0.1:1,192.0.2.1:1",
		"nats://127.0.0.1:1/x", "127.0.0.1", "nats://",
		"127.0.0.1:99999",
	} {
		if _, err := nats.NewLink(nats.LinkOptions{URL: url, Agent: "a", Secret: secret,
			Command: func(*gozzard.Command) {}}); err == nil {
			t.Errorf("link to %s was accepted", url)
		}
	}

	for _, addr := range []string{"localhost:0", "127.0.0.1:0", "127.1.2.3:0", "[::ffff:127.0.0.1]:0"} {
		b, err := nats.StartBroker(nats.BrokerOptions{Listen: addr, Secret: secret})
		if err != nil {
			if addr == "127.1.2.3:0" { // not every system has the whole net
				continue
			}
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if host, _, err := net.SplitHostPort(b.Addr()); err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("%s listens on %s", addr, b.Addr())
		}
		b.Close()
	}
}

func TestPortInUse(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	start := time.Now()
	second, err := nats.StartBroker(nats.BrokerOptions{Listen: b.Addr(), Secret: secret})
	if err == nil {
		second.Close()
		t.Fatal("two brokers on one port")
	}

	if !strings.Contains(err.Error(), "for agents (--agent-listen): another program") ||
		!strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}

	if time.Since(start) > 20*time.Second {
		t.Error("the error took too long")
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	var in inbox
	var lines logLines
	h := hub(t, nats.HubOptions{Broker: b, Receive: in.receive, Malformed: in.malformed, Log: lines.logger()})
	a := attack(t, b, "0.odd")
	newer := []byte{1 << 3, gozzard.ProtocolVersion + 1}
	for range 3 {
		for _, data := range [][]byte{nil, {0xff}, newer} {
			if err := a.Publish("res.0.odd", data); err != nil {
				t.Fatal(err)
			}
		}
	}

	eventually(t, "all to be counted", func() bool { s := h.Stats(); return s.Malformed == 6 && s.Newer == 3 })
	in.mu.Lock()
	if !errors.Is(in.bad["odd"], wire.ErrNewer) {
		t.Errorf("got %v", in.bad)
	}
	in.mu.Unlock()

	if lines.count("the agent uses a newer protocol") != 1 || lines.count("report cannot be read") != 1 {
		t.Errorf("not logged once each:\n%s", lines.b.String())
	}
	if len(in.all()) != 0 {
		t.Errorf("received %v", in.all())
	}
	if err := a.Publish("res.0.odd", make([]byte, nats.MaxMessage+1)); !errors.Is(err, natsgo.ErrMaxPayload) {
		t.Errorf("a message beyond the bound: %v", err)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	a := attack(t, b, "0.greedy")
	for range 100 {
		if _, err := a.Subscribe("op.0.greedy", func(*natsgo.Msg) {}); err != nil {
			break
		}
	}
	eventually(t, "the refusal", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return strings.Contains(strings.ToLower(strings.Join(a.denied, " ")), "maximum subscriptions") || a.IsClosed()
	})
}
