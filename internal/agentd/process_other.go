//go:build !linux

package agentd

import (
	"log/slog"

	"github.com/gozzard/gozzard/internal/host"
)

// prepareProcess has nothing to set on this system.
func prepareProcess(*host.Host, *slog.Logger) {}
