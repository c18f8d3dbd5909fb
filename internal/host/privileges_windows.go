package host

import (
	"fmt"
	"os"
	"os/user"

	"github.com/gozzard/gozzard"
)

// OwnStanding finds out whom this program runs as. On this system that is all whom commands can run as.
func OwnStanding() (Privileges, error) {
	u, err := user.Current()
	if err != nil {
		return Privileges{}, fmt.Errorf("cannot find out whom this agent runs as: %w", err)
	}
	return Privileges{Mode: gozzard.ModeUser, Account: u.Username, UID: uint32(max(0, os.Geteuid()))}, nil
}
