package agentd

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// CheckIdentity returns why an agent could not use the identity in a state folder. A folder without one is good.
func CheckIdentity(data string) error {
	_, err := agent.Identity(data)
	return err
}

// RunningFault asks the agent that runs on a state folder why it cannot write the folder. It returns "" if it can, or
// if no agent answers on the socket in the folder.
func RunningFault(ctx context.Context, data string) (string, error) {
	if !agentsock.Supported {
		return "", nil
	}
	st, err := agentsock.NewClient(filepath.Join(data, SocketName)).Status(ctx)
	if errors.Is(err, agentsock.ErrNotRunning) {
		return "", nil
	}
	return st.Journal.Fault, err
}
