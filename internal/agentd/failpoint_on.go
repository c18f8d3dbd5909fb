//go:build failpoint && unix

package agentd

import (
	"os"
	"strings"
	"syscall"
)

// failpoint kills this process at a named place when the file named by GOZZARD_FAILPOINT_FILE has that name. The
// file goes first, so that it happens once.
func failpoint() func(string) {
	file := os.Getenv("GOZZARD_FAILPOINT_FILE")
	if file == "" {
		return nil
	}
	return func(name string) {
		b, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(b)) != name || os.Remove(file) != nil {
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}
