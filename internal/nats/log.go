package nats

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// brokerLog hands the broker's lines to slog. Its notices are about its own start and stop, which our log says
// better: they go to debug.
type brokerLog struct {
	log   *slog.Logger
	fatal chan string // the first reason why the broker could not start

	limit *rate.Limiter // of what agents can make it say, such as that they were refused
	left  atomic.Uint64 // lines that were left out
}

func newBrokerLog(log *slog.Logger) *brokerLog {
	return &brokerLog{log: log, fatal: make(chan string, 1), limit: rate.NewLimiter(5, 50)}
}

func (l *brokerLog) line(level func(string, ...any), format string, args []any) {
	level("broker", "text", fmt.Sprintf(format, args...))
}

// some says a line unless there were too many of late, and then how many were left out.
func (l *brokerLog) some(level func(string, ...any), format string, args []any) {
	if !l.limit.Allow() {
		l.left.Add(1)
		return
	}
	if n := l.left.Swap(0); n > 0 {
		level("broker said more than is written down", "left out", n)
	}
	l.line(level, format, args)
}

func (l *brokerLog) Noticef(format string, args ...any) { l.line(l.log.Debug, format, args) }
func (l *brokerLog) Errorf(format string, args ...any)  { l.some(l.log.Error, format, args) }
func (l *brokerLog) Debugf(format string, args ...any)  { l.line(l.log.Debug, format, args) }
func (l *brokerLog) Tracef(format string, args ...any)  { l.line(l.log.Debug, format, args) }

// Warnf leaves out what is as it should be: clients other than ours cannot connect.
func (l *brokerLog) Warnf(format string, args ...any) {
	if strings.Contains(format, "TLS Handshake First") {
		l.line(l.log.Debug, format, args)
		return
	}
	l.some(l.log.Warn, format, args)
}

// Fatalf does not end the program: the start fails with the text instead.
func (l *brokerLog) Fatalf(format string, args ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, args...):
	default:
		l.line(l.log.Error, format, args)
	}
}
