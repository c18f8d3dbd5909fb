//go:build !linux

package main

import (
	"log/slog"

	"github.com/gozzard/gozzard/internal/host"
)

// prepareProcess has nothing to settle on this system.
func prepareProcess(*host.Host, *slog.Logger) {}
