package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/host"
)

// verdictWord is how bad a finding is.
type verdictWord string

const (
	findOK   verdictWord = "OK"
	findWarn verdictWord = "WARN" // the agent works, with less
	findFail verdictWord = "FAIL" // the agent does not work, or not reliably
)

// finding is one thing that was looked at.
type finding struct {
	word verdictWord
	what string
	text string
}

// newDoctorCommand is `gozzard agent doctor`.
func newDoctorCommand() *cobra.Command {
	var data, policy string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this host lacks for an agent",
		Long: `Look at this host as an agent would find it and say in words what it lacks. Nothing is changed. Run it as the account that the agent runs as,
with the capabilities that it has: they are what decides about its mode.
The exit code is 1 when something is marked FAIL.`,
		Example: `  gozzard agent doctor --data /var/lib/gozzard-agent
  setpriv --reuid gozzard --regid gozzard --init-groups --inh-caps +setuid,+setgid,+kill --ambient-caps +setuid,+setgid,+kill \
    gozzard agent doctor --data /var/lib/gozzard-agent --policy /etc/gozzard/policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := host.OwnStanding()
			if err != nil {
				return failed(err)
			}
			return report(cmd.OutOrStdout(), append(examine(data, own), checkProgram(),
				checkPolicy(data, policy, own), checkUpdates(data, policy)))
		},
	}

	cmd.Flags().StringVar(&data, "data", "./agent", "folder of the agent's state")
	cmd.Flags().StringVar(&policy, "policy", "", "policy of this host (default policy.yaml in the state folder)")
	return cmd
}

// report prints findings; the error is the exit code.
func report(w io.Writer, all []finding) error {
	bad := false
	for _, f := range all {
		bad = bad || f.word == findFail
		if err := written(fmt.Fprintf(w, "%-4s  %-12s  %s\n", f.word, f.what, printable(f.text))); err != nil {
			return err
		}
	}
	if bad {
		return &exitError{exitFailed, nil}
	}
	return nil
}
