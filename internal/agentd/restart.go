package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// restarter restarts an agent for an operation of its server: the program on disk takes over the process of the agent, as
// after SIGUSR2. It implements agent.Restarter.
type restarter struct {
	options *Options
	asked   chan<- struct{} // nil: the program of this agent is not its own
}

// Check implements agent.Restarter. Everything that could fail is tried before the agent ends.
func (r restarter) Check(ctx context.Context) error {
	switch {
	case r.asked == nil:
		return errors.New("this agent runs inside the program of its server (gozzard dev) and cannot restart by itself: " +
			"restart that program")
	case !selfupdate.InPlace:
		return fmt.Errorf("an agent cannot restart itself on %s: restart its service on the host", selfupdate.Platform())
	}
	if up := r.options.updates; up != nil {
		if trial, _ := up.OnTrial(); trial {
			return fmt.Errorf("release %s is on trial on this host: wait until the trial ends", r.options.Version)
		}
	}

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the program of the agent: %w", err)
	}
	if _, err := checkTakeOver(ctx, r.options.Data, self); err != nil {
		return fmt.Errorf("the program on disk cannot take over, so the agent goes on as it is: %w", err)
	}
	return nil
}

// Restart implements agent.Restarter.
func (r restarter) Restart() {
	select {
	case r.asked <- struct{}{}:
	default: // it was asked already
	}
}

// checkTakeOver checks whether a program file can take over the process of an agent, and returns its version.
func checkTakeOver(ctx context.Context, data, program string) (version string, err error) {
	if err := journal.CheckFolder(data); err != nil { // else the new program could not start
		return "", err
	}
	if err := TrustProgram(program); err != nil { // it runs with all rights of this program
		return "", err
	}
	return selfupdate.SaysVersion(ctx, program)
}
