//go:build !linux

package main

import (
	"context"
	"errors"
	"io"

	"github.com/gozzard/gozzard/internal/importer"
)

// isAdoptDropIn is false: there is no systemd.
func isAdoptDropIn(string) bool { return false }

// adoptable does nothing: running processes are adopted on Linux only.
func adoptable(*importFormat) {}

func (env *cliEnv) adopt(context.Context, *importOptions, importFormat, []importer.File, *importer.Result, io.Reader) error {
	return failed(errors.ErrUnsupported)
}
