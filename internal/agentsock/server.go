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

// Limits of one connection. It carries one request, without a body.
const (
	headerTime = 5 * time.Second
	answerTime = 10 * time.Second
	maxHeader  = 4 << 10
	grace      = time.Second // for answers that are being sent when the agent ends
)

// How long to wait before another try if the socket cannot be made. Its folder may be made later, and a program that
// listens on it may end. The agent works without the socket.
const (
	lookEvery  = time.Second // between two looks whether the socket is still there
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
)

// Options of a server. Path, the three funcs and Log are required.
type Options struct {
	Path  string // absolute
	Group string // the name or number of the group that has read access; "" means none

	// Status, Processes and Reconnect answer the requests. They must not wait for the disk, the network or a
	// process, because people ask when something hangs. Processes returns at most limit processes, and the total.
	Status    func() Status
	Processes func(limit int) ([]Process, int)
	Reconnect func() error

	// Tried is called once: when the socket listens, or could not be made at the first try. May be nil.
	Tried func()

	// HeaderTime is how long a request may take to arrive. The default is 5 s.
	HeaderTime time.Duration

	Log *slog.Logger
}

// Server serves the socket of an agent.
type Server struct {
	o       Options
	own     uint32
	refused atomic.Uint64
	tried   sync.Once

	members, owners chan struct{} // one element for each large answer that is being sent

	mu            sync.Mutex
	lastReconnect time.Time
}

// New makes a server. It does nothing before Run.
func New(o Options) *Server {
	if o.HeaderTime <= 0 {
		o.HeaderTime = headerTime
	}
	if o.Tried == nil {
		o.Tried = func() {}
	}
	return &Server{o: o, own: ownUID(), members: make(chan struct{}, maxLarge), owners: make(chan struct{}, maxLarge)}
}

// Run serves until ctx ends, and then removes the socket. If it cannot make the socket, it logs the error and tries
// again.
func (s *Server) Run(ctx context.Context) error {
	logged := ""
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		err := s.serve(ctx)
		if err == nil {
			return nil
		}
		s.tried.Do(s.o.Tried)
		if err.Error() != logged {
			logged = err.Error()
			s.o.Log.Error("cannot serve the local socket, trying again", "err", err)
		}

		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}

	return nil
}

// serve makes the socket and serves it. It returns nil when ctx has ended.
func (s *Server) serve(ctx context.Context) error {
	// Make the socket.
	sock, err := listenAt(s.o.Path, s.o.Group)
	if err != nil {
		return err
	}
	defer sock.close()
	s.o.Log.Info("local socket is served", "path", s.o.Path, "group", s.o.Group)
	s.tried.Do(s.o.Tried)

	// Serve it.
	srv := &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            s.o.HeaderTime,
		ReadTimeout:                  s.o.HeaderTime,
		WriteTimeout:                 answerTime,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c)
		},
	}
	srv.SetKeepAlivesEnabled(false)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(newAuthListener(sock, s.own, &s.refused, s.o.Log)) }()
	gone := make(chan struct{})
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go watchSocket(watched, sock, gone)
	select {
	case err := <-done:
		return fmt.Errorf("cannot serve the local socket %s: %w", s.o.Path, err)
	case <-gone:
		_ = srv.Close()
		<-done
		return fmt.Errorf("the local socket %s was deleted", s.o.Path)
	case <-ctx.Done():
	}

	// End it. A connection that is still open after the grace time belongs to a client that does not read.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		_ = srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		s.o.Log.Warn("local socket ended with an error", "err", err)
	}
	return nil
}

// watchSocket closes gone when the file of the socket was deleted, perhaps with its whole folder: no client finds the
// socket any more, and a new one is needed.
func watchSocket(ctx context.Context, sock *socket, gone chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		if !sock.inPlace() {
			close(gone)
			return
		}
	}
}

// peerKey is the context key of the connection of a request.
type peerKey struct{}
