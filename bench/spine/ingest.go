//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/wire"
)

const (
	ingestSecret = "only-for-a-broker-on-loopback-that-lives-for-seconds"
	perReport    = 20 // processes
)

// ingestServer is the part of a server that handles status: broker, hub and live index. It acknowledges a full report,
// as the control plane does.
type ingestServer struct {
	broker *nats.Broker
	hub    *nats.Hub
	index  *fleet.Index
	lost   atomic.Uint64 // acknowledgements that the fabric rejected
	cancel context.CancelFunc
	done   chan error
}

func newIngestServer() (*ingestServer, error) {
	s := &ingestServer{index: fleet.New(), done: make(chan error, 1)}
	var err error
	if s.broker, err = nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", Secret: ingestSecret}); err != nil {
		return nil, err
	}

	s.hub, err = nats.NewHub(nats.HubOptions{Broker: s.broker, Limits: nats.Limits{Messages: -1, Bytes: -1},
		Receive: func(from gozzard.AgentID, cloud int, r *gozzard.Report) {
			if s.index.Full(from, r.Round, r.Part, r.Parts, r.Statuses) && s.hub.Send(from, cloud, ackOf(r)) != nil {
				s.lost.Add(1)
			}
		}})
	if err != nil {
		s.broker.Close()
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.done <- s.hub.Run(ctx) }()
	return s, nil
}

func ackOf(r *gozzard.Report) *gozzard.Command {
	return &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: r.Session,
		AckRound: r.Round}
}

func (s *ingestServer) close() {
	s.cancel()
	<-s.done
	s.broker.Close()
}

func (s *ingestServer) carryOut(o order) (answer, error) {
	switch o.Do {
	case "address":
		return answer{Addr: s.broker.Addr()}, nil
	case "check": // N rows are known and no acknowledgement was lost
		if st := s.hub.Stats(); s.index.Len() != o.N || st.Dropped+st.Malformed+s.lost.Load() > 0 {
			return answer{}, fmt.Errorf("%d of %d rows, %d acknowledgements lost, %+v", s.index.Len(), o.N,
				s.lost.Load(), st)
		}
		return answer{}, nil
	}
	return answer{}, fmt.Errorf("cannot do %q", o.Do)
}

// ingestLinks are real links that send reports.
type ingestLinks struct {
	links []*nats.Link
	acks  []chan struct{}
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

func (l *ingestLinks) close() {
	if l.stop != nil {
		l.stop()
	}
	l.wg.Wait()
}

func (l *ingestLinks) carryOut(o order) (answer, error) {
	switch o.Do {
	case "join":
		return answer{}, l.join(o)
	case "report":
		_, err := inParallel(len(l.links), o.Rounds,
			func(i, round int) (time.Duration, error) { return 0, l.report(i, round) })
		return answer{}, err
	}
	return answer{}, fmt.Errorf("cannot do %q", o.Do)
}

func (l *ingestLinks) join(o order) error {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	up := make(chan struct{}, o.N)
	for i := range o.N {
		acks := make(chan struct{}, 1)
		link, err := nats.NewLink(nats.LinkOptions{
			URL: o.Addr, Agent: gozzard.AgentID("link-" + strconv.Itoa(i)), Secret: ingestSecret,
			Command: func(*gozzard.Command) { acks <- struct{}{} }, Up: func() { up <- struct{}{} },
		})
		if err != nil {
			return err
		}
		l.links, l.acks = append(l.links, link), append(l.acks, acks)
		l.wg.Go(func() { _ = link.Run(ctx) }) // ends only with the context
	}

	late := time.After(patience)
	for range o.N {
		select {
		case <-up:
		case <-late:
			return errors.New("the links do not connect")
		}
	}

	return nil
}

func (l *ingestLinks) report(i, round int) error {
	if err := l.links[i].Send(statusReport(i, round)); err != nil {
		return err
	}
	select {
	case <-l.acks[i]:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("report %d of link %d was not acknowledged", round, i)
	}
}

// statusReport is the full report of a host. The usage differs each time.
func statusReport(host, round int) *gozzard.Report {
	r := &gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportStatus, Session: 1,
		Round: uint64(round + 1), Parts: 1}
	now := time.Now().Unix()
	for i := range perReport {
		r.Statuses = append(r.Statuses, gozzard.Status{
			Key:    gozzard.Key{Namespace: namespace, Name: fmt.Sprintf("worker-%02d", i)},
			Labels: map[string]string{"proc_name": "worker"},
			Wanted: gozzard.StateRunning, State: gozzard.StateRunning, Hosted: true,
			PID: int32(1000 + host%1000*perReport + i), Version: "2.4.1",
			RegisteredAt: now - 86400, StartedAt: now - 3600, ReportedAt: now, CPU: float32(round%100) / 7, Mem: 0.5,
			FD: int32(64 + round%10),
		})
	}

	return r
}

// measureIngest compares status reports that are decoded and stored with the same bytes on bare NATS.
func (b *bench) measureIngest(ctx context.Context) error {
	n, rounds := b.size.links, b.size.reports
	b.say("status reports: %d links, %d reports of %d processes each", n, rounds, perReport)
	size := len(wire.AppendReport(nil, statusReport(1, 1)))
	reports := n * rounds
	ours, oursWall, err := b.ingestOurs(n, rounds)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}

	bare, bareWall, err := b.ingestBare(n, rounds, size)
	if err != nil {
		return err
	}

	t := b.res.Table(fmt.Sprintf("Status reports of %d processes (%d bytes), %d links in one process, each waits for its acknowledgement", perReport, size, n),
		"decoded into the live index", "the same bytes on bare NATS")
	t.Add("reports a second", perSecond(reports, oursWall), perSecond(reports, bareWall), ratio(bareWall, oursWall), "")
	t.Add("rows a second", perSecond(reports*perReport, oursWall), "", "", "")
	t.Add("server CPU per report", each(ours, reports), each(bare, reports), ratio(ours, bare), "42 to 63 µs in all")
	t.Add("a core carries, reporting every 60 s", fmt.Sprintf("%.0f hosts", 60*float64(reports)/ours.Seconds()), "",
		"", "")
	return nil
}

func (b *bench) ingestOurs(n, rounds int) (cpu, wall time.Duration, err error) {
	server, err := b.startPart("ingest-server")
	if err != nil {
		return 0, 0, err
	}

	defer server.dismiss()
	at, err := server.do(order{Do: "address"})
	if err != nil {
		return 0, 0, err
	}

	links, err := b.startPart("ingest-links")
	if err != nil {
		return 0, 0, err
	}

	defer links.dismiss()

	if _, err := links.do(order{Do: "join", Addr: at.Addr, N: n}); err != nil {
		return 0, 0, err
	}
	if _, err := links.do(order{Do: "report", Rounds: 1}); err != nil { // the first report creates the rows
		return 0, 0, err
	}

	cpu, wall, err = child.Spent(server.Process, func() error {
		_, err := links.do(order{Do: "report", Rounds: rounds})
		return err
	})
	if err != nil {
		return 0, 0, err
	}

	_, err = server.do(order{Do: "check", N: n * perReport})
	return cpu, wall, err
}

func (b *bench) ingestBare(n, rounds, size int) (cpu, wall time.Duration, err error) {
	bare, err := b.startBare(n, 1)
	if err != nil {
		return 0, 0, err
	}

	defer bare.stop()
	ack := len(wire.AppendCommand(nil, ackOf(statusReport(1, 1))))
	if _, err := bare.server.do(order{Do: "answer", Down: ack}); err != nil {
		return 0, 0, err
	}

	return child.Spent(bare.server.Process, func() error {
		_, err := bare.agents.do(order{Do: "report", Rounds: rounds, Up: size})
		return err
	})
}
