package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// textLog writes a log for people: 15:04:05 INFO server started url=http://127.0.0.1:8080. The handler of the standard
// library writes the values: it quotes and escapes everything that a terminal would obey.
type textLog struct {
	out    *textLogOutput
	values slog.Handler // writes to out.line
}

// textLogOutput is what a log and the logs made from it share.
type textLogOutput struct {
	mu     sync.Mutex
	w      io.Writer
	line   bytes.Buffer
	colour painter
}

func newTextLog(w io.Writer, level slog.Level, colours bool) *textLog {
	out := &textLogOutput{w: w, colour: painter(colours)}
	return &textLog{out: out, values: slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		}})}
}

// Enabled implements slog.Handler.
func (l *textLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.values.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (l *textLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &textLog{out: l.out, values: l.values.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l *textLog) WithGroup(name string) slog.Handler {
	return &textLog{out: l.out, values: l.values.WithGroup(name)}
}

// Handle implements slog.Handler.
func (l *textLog) Handle(ctx context.Context, r slog.Record) error {
	o := l.out
	o.mu.Lock()
	defer o.mu.Unlock()

	// The values, on a line that ends with a line break.
	o.line.Reset()
	if err := l.values.Handle(ctx, r); err != nil {
		return err
	}
	values := bytes.TrimRight(o.line.Bytes(), "\n")

	// The line: one write, so that lines of several programs on a terminal do not mix.
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s", o.colour.paint(faint, r.Time.Format(time.TimeOnly)),
		o.colour.paint(colourOf(r.Level), fmt.Sprintf("%-5s", r.Level)), printable(r.Message))
	if len(values) > 0 {
		b.WriteString(" " + o.colour.paint(faint, string(values)))
	}
	b.WriteByte('\n')
	_, err := o.w.Write(b.Bytes())
	return err
}

func colourOf(level slog.Level) colour {
	switch {
	case level >= slog.LevelError:
		return red
	case level >= slog.LevelWarn:
		return yellow
	case level >= slog.LevelInfo:
		return green
	}
	return faint
}
