package host

import (
	"fmt"
	"os"
	"os/user"

	"github.com/gozzard/gozzard"
)

// OwnPrivileges returns the account of this program. On Windows commands run as this account only.
func OwnPrivileges() (Privileges, error) {
	u, err := user.Current()
	if err != nil {
		return Privileges{}, fmt.Errorf("cannot find the account of this agent: %w", err)
	}
	return Privileges{Mode: gozzard.ModeUser, Account: u.Username, UID: uint32(max(0, os.Geteuid()))}, nil
}
