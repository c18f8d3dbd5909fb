package host

import (
	"fmt"
	"runtime"

	"github.com/gozzard/gozzard"
)

// checkShell refuses commands that this system has no shell for.
func checkShell(s gozzard.Shell) error {
	if s.RunsOn(runtime.GOOS) {
		return nil
	}
	return fmt.Errorf("commands written for %q cannot run on %s", string(s), runtime.GOOS)
}
