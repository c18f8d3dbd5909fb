package nats

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// brokerLog writes the broker's log lines to slog. The broker's notices are about its start and stop, which the server
// logs itself, so they have level debug.
type brokerLog struct {
	log   *slog.Logger
	fatal chan string // the first reason why the broker cannot start

	limit   *rate.Limiter // of lines that agents can cause, such as rejected connections
	skipped atomic.Uint64 // lines beyond the limit
}

func newBrokerLog(log *slog.Logger) *brokerLog {
	return &brokerLog{log: log, fatal: make(chan string, 1), limit: rate.NewLimiter(5, 50)}
}

func (l *brokerLog) line(level func(string, ...any), format string, args []any) {
	level("broker", "text", fmt.Sprintf(format, args...))
}

// limited logs a line unless there were too many recently. The next line after a gap says how many were skipped.
func (l *brokerLog) limited(level func(string, ...any), format string, args []any) {
	if !l.limit.Allow() {
		l.skipped.Add(1)
		return
	}
	if n := l.skipped.Swap(0); n > 0 {
		level("log lines of the broker were skipped: there were too many", "skipped", n)
	}
	l.line(level, format, args)
}

func (l *brokerLog) Noticef(format string, args ...any) { l.line(l.log.Debug, format, args) }
func (l *brokerLog) Debugf(format string, args ...any)  { l.line(l.log.Debug, format, args) }
func (l *brokerLog) Tracef(format string, args ...any)  { l.line(l.log.Debug, format, args) }

// Errorf logs a failed call of another server as debug: it is repeated every second while that server is away, and the
// server says so once.
func (l *brokerLog) Errorf(format string, args ...any) {
	if strings.Contains(format, "connect to route") {
		l.line(l.log.Debug, format, args)
		return
	}
	l.limited(l.log.Error, format, args)
}

// Warnf logs two warnings as debug, because that is intended: clients must begin with a TLS handshake, and the broker does
// not check the certificates of peers, which ClusterOptions.TLS does.
func (l *brokerLog) Warnf(format string, args ...any) {
	if strings.Contains(format, "TLS Handshake First") || strings.Contains(format, "solicited routes will not be verified") {
		l.line(l.log.Debug, format, args)
		return
	}
	l.limited(l.log.Warn, format, args)
}

// Fatalf does not end the program: StartBroker returns the text as its error.
func (l *brokerLog) Fatalf(format string, args ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, args...):
	default:
		l.line(l.log.Error, format, args)
	}
}
