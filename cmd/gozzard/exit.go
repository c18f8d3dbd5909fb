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
	exitDetached   = 130 // by Ctrl-C; a task goes on
)

// exitError ends the program with a code. Without an error the command has said everything itself.
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

// failed gives an error of a long-running command its exit code; nil stays nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFailed, err}
}

// served gives an error that came from a server its exit code; nil stays nil.
func served(err error) error {
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
	case gozzard.ErrUnauthenticated, gozzard.ErrOperatorRequired, gozzard.ErrUserForbidden, gozzard.ErrAppForbidden:
		code = exitNotAllowed
	case gozzard.ErrNotFound:
		code = exitNoMatch
	}

	return &exitError{code, errors.New(printable(err.Error()))}
}
