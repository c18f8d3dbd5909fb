//go:build !linux

package agentd

import (
	"context"
	"errors"

	"github.com/gozzard/gozzard"
)

// PartEnv has no effect on this system.
const PartEnv = "GOZZARD_LEAVE_PART"

// account is an account that root acts as.
type account struct{}

// otherOwner finds none: a state folder belongs to the account that uses it.
func otherOwner(string) (*account, error) { return nil, nil }

func (o *LeaveOptions) partAs(context.Context, *account, gozzard.AgentMode) (Left, error) {
	return Left{}, errors.New("not supported on this system")
}
