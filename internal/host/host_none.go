//go:build !linux && !windows

package host

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Host does not exist on this system: New makes none. The type has the methods that an agent calls, so that the rest of
// the program can be built.
type Host struct{ machine }

type machine interface {
	Groups() string
	supervise.Host
	Facts() gozzard.HostInfo
	Usage() (load, memFree int64)
	Close() error
}

// New always fails on this system.
func New(Options) (*Host, error) { return nil, Supported() }

// OwnPrivileges always fails on this system.
func OwnPrivileges() (Privileges, error) { return Privileges{}, Supported() }
