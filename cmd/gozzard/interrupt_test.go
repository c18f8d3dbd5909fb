package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// TestSignalDuringStart: a signal ends a start as it ends a server that runs, without an error.
func TestSignalDuringStart(t *testing.T) {
	for _, command := range []string{"server", "dev"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		args := []string{command, "--data", t.TempDir(), "--listen", "127.0.0.1:0"}
		if command == "server" {
			args = append(args, "--agent-listen", "127.0.0.1:0")
		}
		if code := run(ctx, args); code != exitOK {
			t.Errorf("%s: exit %d", command, code)
		}
	}

	// What has another cause is an error, also when a signal comes at the same time.
	ctx, cancel := context.WithCancelCause(t.Context())
	wrong := errors.New("the disk is full")
	if err := unlessSignalled(ctx, slog.New(slog.DiscardHandler), context.Canceled); err == nil {
		t.Error("no error without a signal")
	}
	cancel(errInterrupted)
	if err := unlessSignalled(ctx, slog.New(slog.DiscardHandler), wrong); !errors.Is(err, wrong) {
		t.Errorf("a full disk is %v", err)
	}
}
