package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// errInterrupted is the cause of a context that Ctrl-C has ended.
var errInterrupted = errors.New("ended by Ctrl-C")

// untilSignal makes a context that ends with SIGINT or SIGTERM. The second Ctrl-C ends the program at once, because the
// first one gives the signal back to the system: people press it again when the first one takes too long.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	pressed, release := signal.NotifyContext(parent, os.Interrupt)
	forget := context.AfterFunc(pressed, func() {
		release()
		cancel(errInterrupted)
	})
	ctx, stopTerm := signal.NotifyContext(ctx, syscall.SIGTERM)

	return ctx, func() {
		forget()
		release()
		stopTerm()
		cancel(context.Canceled)
	}
}

// unlessSignalled is the error of a start, nil if a signal has ended the start: then the error is only its trace.
func unlessSignalled(ctx context.Context, log *slog.Logger, err error) error {
	if err == nil || ctx.Err() == nil || !ofCancellation(ctx, err) {
		return err
	}
	log.Debug("ended during the start", "err", err)
	return nil
}

// ofCancellation reports whether an error comes from the end of a context. Some libraries keep only its text.
func ofCancellation(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) ||
		strings.Contains(err.Error(), context.Canceled.Error()) || strings.Contains(err.Error(), context.Cause(ctx).Error())
}

// part prints what goes on after Ctrl-C has ended a long-running command at a terminal, and how to continue. Elsewhere
// nobody reads it.
func part(ctx context.Context, w io.Writer, format string, args ...any) {
	if !errors.Is(context.Cause(ctx), errInterrupted) || !isTerminal(w) {
		return
	}
	_, _ = fmt.Fprintln(w) // behind ^C; w may be closed
	sayEnd(ctx, w, format, args...)
}

// sayEnd prints what goes on, and how to continue.
func sayEnd(ctx context.Context, w io.Writer, format string, args ...any) {
	goesOn, again := finishedIn(ctx, fmt.Sprintf(format, args...)), textIn(ctx, "Start it again with: %s", ownCommand(os.Args))
	_, _ = fmt.Fprintf(w, "%s\n%s\n", goesOn, again) // w may be closed
}

// processesLeft says how many processes keep running.
func processesLeft(n int) string {
	switch n {
	case 0:
		return "No process is left running."
	case 1:
		return "1 process keeps running. Until the next start nothing supervises it."
	}
	return fmt.Sprintf("%d processes keep running. Until the next start nothing supervises them.", n)
}

// ownCommand is a command line as people paste it into a shell.
func ownCommand(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = printable(a)
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%", r)
		}) {
			words[i] = "'" + strings.ReplaceAll(words[i], "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
