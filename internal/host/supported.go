package host

import (
	"fmt"
	"runtime"
)

// Supported is nil on the systems that agents run on. Elsewhere it is an error that says what to do.
func Supported() error { return supportedOn(runtime.GOOS) }

func supportedOn(system string) error {
	switch system {
	case "linux", "windows":
		return nil
	}
	return fmt.Errorf("cannot run an agent on %s: agents run on Linux and Windows only; "+
		"run the server and the command line here, and agents on Linux hosts", system)
}
