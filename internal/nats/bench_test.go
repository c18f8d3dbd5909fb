package nats_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

// BenchmarkFanOut sends a command to each of n agents and waits for a report from each. "bare" does the same with the
// same bytes, with request and reply of the library on a server without authentication.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{10, 200} {
		b.Run(fmt.Sprintf("gozzard/agents=%d", n), func(b *testing.B) { fanOutGozzard(b, n) })
		b.Run(fmt.Sprintf("bare/agents=%d", n), func(b *testing.B) { fanOutBare(b, n) })
	}
}

func benchCommand() *gozzard.Command {
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "worker"},
		Policy: gozzard.DefaultPolicy()})
	key := gozzard.Key{Namespace: "gsekit", Name: "worker-1"}
	return &gozzard.Command{Kind: gozzard.CommandOperate, Session: 1, Ops: []gozzard.Op{
		{ID: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: 1, Index: 1}, Gen: 1, Action: gozzard.ActionStart,
			Key: key, Spec: spec},
	}}
}

func benchReport() *gozzard.Report {
	return &gozzard.Report{Kind: gozzard.ReportResults, Session: 1, Results: []gozzard.OpReport{
		{ID: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: 1, Index: 1}, Phase: gozzard.PhaseDone,
			Outcome: gozzard.Outcome{Code: gozzard.CodeOK}},
	}}
}

func fanOutGozzard(b *testing.B, n int) {
	br := broker(b, "127.0.0.1:0")
	var back sync.WaitGroup
	h := hub(b, nats.HubOptions{Broker: br, Limits: nats.Limits{Messages: -1, Bytes: -1},
		Receive: func(gozzard.AgentID, int, *gozzard.Report) { back.Done() }})

	report, up := benchReport(), make(chan struct{}, n)
	for i := range n {
		var l *nats.Link
		answer := func(*gozzard.Command) {
			if err := l.Send(report); err != nil {
				b.Error(err)
			}
		}
		l, err := nats.NewLink(nats.LinkOptions{
			URL: br.Addr(), Agent: agentID(i), Secret: secret, Command: answer, Up: func() { up <- struct{}{} },
		})
		if err != nil {
			b.Fatal(err)
		}
		run(b, l.Run)
	}

	for range n {
		<-up
	}

	cmd := benchCommand()
	for b.Loop() {
		back.Add(n)
		for i := range n {
			if err := h.Send(agentID(i), 0, cmd); err != nil {
				b.Fatal(err)
			}
		}
		back.Wait()
	}

	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func fanOutBare(b *testing.B, n int) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		b.Fatal(err)
	}

	s.Start()
	b.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })

	connect := func(opts ...natsgo.Option) *natsgo.Conn {
		conn, err := natsgo.Connect(s.ClientURL(), opts...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(conn.Close)
		return conn
	}

	report := wire.AppendReport(nil, benchReport())
	for i := range n {
		conn := connect()
		if _, err := conn.Subscribe("op.0."+string(agentID(i)), func(m *natsgo.Msg) {
			if err := m.Respond(report); err != nil {
				b.Error(err)
			}
		}); err != nil {
			b.Fatal(err)
		}
		if err := conn.Flush(); err != nil {
			b.Fatal(err)
		}
	}

	var back sync.WaitGroup
	hub := connect(natsgo.InProcessServer(s))
	inbox := natsgo.NewInbox()
	if _, err := hub.Subscribe(inbox, func(*natsgo.Msg) { back.Done() }); err != nil {
		b.Fatal(err)
	}

	cmd := wire.AppendCommand(nil, benchCommand())
	for b.Loop() {
		back.Add(n)
		for i := range n {
			if err := hub.PublishRequest("op.0."+string(agentID(i)), inbox, cmd); err != nil {
				b.Fatal(err)
			}
		}
		back.Wait()
	}

	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
