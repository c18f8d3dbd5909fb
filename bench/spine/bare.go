//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
)

const patience = 30 * time.Second // limit of one fan-out, and of one answer

// bareServer is NATS alone: a server, and one client that sends requests. The client connects inside the process, as
// our hub does.
type bareServer struct {
	server *server.Server
	conn   *natsgo.Conn
}

func newBareServer() (*bareServer, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		MaxPending: 256 << 20})
	if err != nil {
		return nil, fmt.Errorf("cannot set up NATS: %w", err)
	}

	s.Start()

	if !s.ReadyForConnections(patience) {
		return nil, errors.New("cannot start NATS")
	}

	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to NATS: %w", err)
	}

	return &bareServer{server: s, conn: conn}, nil
}

func (b *bareServer) close() {
	b.conn.Close()
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *bareServer) carryOut(o order) (answer, error) {
	switch o.Do {
	case "address":
		return answer{Addr: b.server.ClientURL()}, nil
	case "fanout":
		return fanOut(b.conn, o)
	case "pairs":
		return pairs(b.conn, o)
	case "answer": // answer reports from now on
		ack := make([]byte, o.Down)
		// The client that waits for a lost answer notices it.
		sub, err := b.conn.Subscribe("status.*", func(m *natsgo.Msg) { _ = m.Respond(ack) })
		if err != nil {
			return answer{}, err
		}
		return answer{}, errors.Join(sub.SetPendingLimits(-1, -1), b.conn.Flush())
	}
	return answer{}, fmt.Errorf("cannot do %q", o.Do)
}

// fanOut sends a request to each of n agents and waits for all replies, for a number of rounds. With Ack each agent
// gets an acknowledgement of its reply.
func fanOut(conn *natsgo.Conn, o order) (w answer, err error) {
	back := make(chan struct{}, o.N)
	inbox, ack := natsgo.NewInbox()+".", make([]byte, o.Ack)
	sub, err := conn.Subscribe(inbox+"*", func(m *natsgo.Msg) {
		if o.Ack > 0 {
			// It fails only with the connection, and the loop below notices that.
			_ = conn.Publish("op."+strings.TrimPrefix(m.Subject, inbox), ack)
		}
		back <- struct{}{}
	})
	if err != nil {
		return w, err
	}

	defer func() { err = errors.Join(err, sub.Unsubscribe()) }()
	request := make([]byte, o.Down)
	for range o.Rounds {
		began := time.Now()
		for i := range o.N {
			if err := conn.PublishRequest("op."+strconv.Itoa(i), inbox+strconv.Itoa(i), request); err != nil {
				return w, err
			}
		}
		late := time.After(patience)
		for i := range o.N {
			select {
			case <-back:
			case <-late:
				return w, fmt.Errorf("%d of %d replies came", i, o.N)
			}
		}
		w.Took = append(w.Took, time.Since(began))
	}

	return w, nil
}

// pairs runs n callers that send requests to agent 0. Each waits for its reply before it sends the next request.
func pairs(conn *natsgo.Conn, o order) (w answer, err error) {
	request := make([]byte, o.Down)
	took, err := inParallel(o.N, o.Rounds, func(int, int) (time.Duration, error) {
		began := time.Now()
		_, err := conn.Request("op.0", request, patience)
		return time.Since(began), err
	})
	return answer{Took: took}, err
}

// bareAgents are connections that answer requests.
type bareAgents struct {
	conns []*natsgo.Conn
}

func (a *bareAgents) close() {
	for _, c := range a.conns {
		c.Close()
	}
}

func (a *bareAgents) carryOut(o order) (answer, error) {
	switch o.Do {
	case "join":
		return answer{}, a.join(o)
	case "report": // each connection sends a report and waits for the answer before the next
		report := make([]byte, o.Up)
		_, err := inParallel(len(a.conns), o.Rounds, func(i, _ int) (time.Duration, error) {
			_, err := a.conns[i].Request("status."+strconv.Itoa(i), report, patience)
			return 0, err
		})
		return answer{}, err
	}
	return answer{}, fmt.Errorf("cannot do %q", o.Do)
}

func (a *bareAgents) join(o order) error {
	reply := make([]byte, o.Up)
	for i := range o.N {
		conn, err := natsgo.Connect(o.Addr, natsgo.Timeout(patience))
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		a.conns = append(a.conns, conn)
		_, err = conn.Subscribe("op."+strconv.Itoa(i), func(m *natsgo.Msg) {
			if m.Reply != "" {
				_ = m.Respond(reply) // the client that waits for the reply notices an error
			}
		})
		if err != nil {
			return err
		}
		if err := conn.FlushTimeout(patience); err != nil {
			return err
		}
	}

	return nil
}

// inParallel runs f in n goroutines, a number of rounds in each, and returns all that f measured. The first error ends
// it.
func inParallel(n, rounds int, f func(worker, round int) (time.Duration, error)) ([]time.Duration, error) {
	took, errs := make([][]time.Duration, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for round := range rounds {
				d, err := f(i, round)
				if err != nil {
					errs[i] = err
					return
				}
				took[i] = append(took[i], d)
			}
		})
	}

	wg.Wait()
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}

	return all, errors.Join(errs...)
}

// bareFleet is the limit that we compare with: NATS in one process, all agents in another.
type bareFleet struct{ server, agents *part }

func (b *bench) startBare(n, up int) (_ *bareFleet, err error) {
	f := &bareFleet{}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()

	if f.server, err = b.startPart("bare-server"); err != nil {
		return nil, err
	}

	at, err := f.server.do(order{Do: "address"})
	if err != nil {
		return nil, err
	}
	if f.agents, err = b.startPart("bare-agents"); err != nil {
		return nil, err
	}

	_, err = f.agents.do(order{Do: "join", Addr: at.Addr, N: n, Up: up})
	return f, err
}

func (f *bareFleet) stop() {
	for _, p := range []*part{f.agents, f.server} {
		if p != nil {
			p.dismiss()
		}
	}
}
