package main

import (
	"log/slog"
	"syscall"

	"github.com/gozzard/gozzard/internal/host"
)

// prepareProcess settles what children inherit from this process and who collects them: files of commands are not
// writable by others, and daemons that lose their parents become ours, so that their exit codes are known and no
// dead one stays in the process table.
func prepareProcess(h *host.Host, log *slog.Logger) {
	syscall.Umask(0o022)
	heedSignals()
	if err := h.BecomeSubreaper(); err != nil {
		log.Warn("exit codes of daemons will not be known", "err", err)
	}
}
