package agentd

import (
	"log/slog"
	"syscall"

	"github.com/gozzard/gozzard/internal/host"
)

// prepareProcess sets what children inherit from this process: the files of commands are not writable by other
// accounts. It also makes this process the parent of daemons whose parents exit, so that it learns their exit codes
// and no dead one stays in the process table.
func prepareProcess(h *host.Host, log *slog.Logger) {
	syscall.Umask(0o022)
	resetSignals()
	if err := h.BecomeSubreaper(); err != nil {
		log.Warn("cannot learn the exit codes of daemons", "err", err)
	}
}
