package agentsock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of one connection. It carries one request, without a body.
const (
	headerTime = 5 * time.Second
	answerTime = 10 * time.Second
	maxHeader  = 4 << 10
	grace      = time.Second // for answers under way at the end
)

// A socket that cannot be made is tried again: its folder may come later, and the one who listens on it may go. The
// agent's work does not hang on it.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
)

// Options of a server. Path, the three funcs and Log are required.
type Options struct {
	Path  string // absolute
	Group string // name or number of the group whose members may look; "": none

	// Nothing of this may wait for the disk, the network or a process: people ask when something is stuck.
	Status    func() Status
	Processes func(most int) ([]Process, int)
	Reconnect func() error

	// HeaderTime is how long a request may take to arrive, default 5 s.
	HeaderTime time.Duration

	Log *slog.Logger
}

// Server serves the socket of an agent.
type Server struct {
	o       Options
	own     uint32
	refused atomic.Uint64

	members, owners chan struct{} // room for great answers

	mu     sync.Mutex
	remade time.Time // the link
}

// New makes a server; nothing happens before Run.
func New(o Options) *Server {
	if o.HeaderTime <= 0 {
		o.HeaderTime = headerTime
	}
	return &Server{o: o, own: ownUID(), members: make(chan struct{}, maxGreat), owners: make(chan struct{}, maxGreat)}
}

// Run serves until ctx ends, and takes the socket away then. That the socket cannot be made is logged and no reason
// to end.
func (s *Server) Run(ctx context.Context) error {
	said := ""
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		err := s.serve(ctx)
		if err == nil {
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			s.o.Log.Error("there is no local socket, it is tried again", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}

	return nil
}

// serve returns nil when ctx has ended.
func (s *Server) serve(ctx context.Context) error {
	sock, err := listenAt(s.o.Path, s.o.Group)
	if err != nil {
		return err
	}

	defer sock.close()
	s.o.Log.Info("local socket is served", "path", s.o.Path, "group", s.o.Group)

	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.o.HeaderTime, ReadTimeout: s.o.HeaderTime, WriteTimeout: answerTime,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c)
		},
	}

	srv.SetKeepAlivesEnabled(false)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(newGate(sock, s.own, &s.refused, s.o.Log)) }()

	select {
	case err := <-done:
		return fmt.Errorf("cannot serve the local socket %s: %w", s.o.Path, err)
	case <-ctx.Done():
	}

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()

	if err := srv.Shutdown(end); err != nil {
		_ = srv.Close() // what is still open now is a client that does not read
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		s.o.Log.Warn("the local socket had a fault at its end", "err", err)
	}

	return nil
}

// peerKey is where a request finds its connection.
type peerKey struct{}
