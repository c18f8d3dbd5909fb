package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentd"
)

// newAgentLeaveCommand is `gozzard agent leave`.
func newAgentLeaveCommand() *cobra.Command {
	var o agentd.LeaveOptions
	var logs logFlags
	var keep bool
	cmd := &cobra.Command{
		Use:   "leave",
		Short: "Take this host out of its fleet and remove the agent",
		Long: `Take this host out of its fleet. The command stops the agent, stops its processes (--stop) or lets them
run on without supervision (--keep), has the server remove this host, and deletes the state folder and
the unit. Where systemd does not run, stop the agent yourself first.

The certificate of this host is the right to remove it: no account on the server is needed. This agent
id can never join again; a new join makes a new one, and its addresses are free for it. The policy in
/etc/gozzard and the program stay. Services that were adopted from systemd are named, with the commands
that give them back to systemd.

Run it as root. If the state folder belongs to another account (modes cap and user), the command acts
on the processes as that account.

The command first checks what it can: the state folder, and that the server answers. When a later step
fails, nothing that comes after it is done, the unit of the agent is started again, and the same command
continues.`,
		Example: `  gozzard agent leave --data /var/lib/gozzard-agent --stop
  gozzard agent leave --data /var/lib/gozzard-agent --keep --offline`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Stop && keep {
				return usage("give --stop or --keep, not both")
			}
			if !o.Stop && !keep {
				return usage("either --stop or --keep is required: are the processes of this host stopped, or do they " +
					"keep running?")
			}
			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			o.Log, o.Version = log, version
			if os.Getenv(agentd.PartEnv) != "" {
				return failed(leavePart(cmd, o))
			}
			return failed(leave(cmd, o))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./agent", "state folder of the agent")
	f.StringVar(&o.Policy.File, "policy", "", "policy `FILE` of this host, if the agent was started with --policy")
	f.BoolVar(&o.Stop, "stop", false, "stop the processes of this host")
	f.BoolVar(&keep, "keep", false, "let the processes run on, without supervision")
	f.BoolVar(&o.Offline, "offline", false,
		"do not ask the server; an admin then removes the host there: gozzard hosts remove HOST")
	logs.register(cmd, "warn")
	return cmd
}

// leavePart is what leave has the account of the agent do.
func leavePart(cmd *cobra.Command, o agentd.LeaveOptions) error {
	left, err := agentd.LeavePart(cmd.Context(), o)
	if err != nil {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(left)
}

// leave takes this host out of its fleet and prints what was done.
func leave(cmd *cobra.Command, o agentd.LeaveOptions) error {
	left, err := agentd.Leave(cmd.Context(), o)
	if err != nil {
		return err
	}

	text := textIn(cmd.Context(), "this host left the fleet")
	if left.Server != "" {
		text += textIn(cmd.Context(), " of %s", left.Server)
	}
	word := textIn(cmd.Context(), "keep running")
	if o.Stop {
		word = textIn(cmd.Context(), "were stopped")
	}
	text += textIn(cmd.Context(), "; %d processes %s; %s is deleted", left.Processes, word, o.Data)
	if len(left.Units) > 0 {
		text += textIn(cmd.Context(), "; removed %s", words(left.Units))
	}
	services, back := adopt.GivenUp()
	switch {
	case len(services) > 0 && o.Stop:
		text += textIn(cmd.Context(), "\nsystemd does not start %s, which were adopted; to give them back to systemd:\n  %s",
			words(services), strings.Join(back, "\n  "))
	case len(services) > 0:
		text += textIn(cmd.Context(), "\nsystemd does not start %s, which were adopted; to give them back to systemd, first end their "+
			"processes, or they run twice:\n  %s", words(services), strings.Join(back, "\n  "))
	}
	return checkWrite(fmt.Fprintln(cmd.OutOrStdout(), text))
}
