package main

import (
	"context"
	"errors"

	"github.com/gozzard/gozzard"
)

// The exit codes of every command.
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotRunning = 3
	exitNotAllowed = 4
	exitNoMatch    = 5
	exitPartly     = 6
	exitTimedOut   = 7
	exitDetached   = 130 // ended by Ctrl-C; a task continues
)

// exitError ends the program with an exit code. Without an error the program prints nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return "failed"
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed adds the exit code 1 to an error. nil stays nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFailed, err}
}

// withExitCode adds the exit code to an error of a server. nil stays nil.
func withExitCode(err error) error {
	var done *exitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &done):
		return err
	case errors.Is(err, context.Canceled):
		return &exitError{exitDetached, nil}
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{exitTimedOut, err}
	}

	code := exitFailed
	switch gozzard.KindOf(err) {
	case gozzard.ErrInvalid:
		code = exitUsage
	case gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrOperatorRequired, gozzard.ErrUserForbidden,
		gozzard.ErrAppForbidden:
		code = exitNotAllowed
	case gozzard.ErrNotFound:
		code = exitNoMatch
	}

	return &exitError{code, printableError{err}}
}

// printableError is an error with a text from elsewhere.
type printableError struct{ err error }

func (e printableError) Error() string { return printable(e.err.Error()) }

func (e printableError) Unwrap() error { return e.err }
