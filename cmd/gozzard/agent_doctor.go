package main

import (
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/doctor"
)

// newAgentDoctorCommand is `gozzard agent doctor`.
func newAgentDoctorCommand() *cobra.Command {
	var o doctor.HostOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this host is ready for an agent",
		Long: `Check this host as the agent would, and report what is missing. Nothing is changed. Run it as the
account of the agent and with its capabilities: they decide the mode of the agent. The exit code is
1 when a line is marked FAIL.`,
		Example: `  gozzard agent doctor --data /var/lib/gozzard-agent
  setpriv --reuid gozzard --regid gozzard --init-groups \
    --inh-caps +setuid,+setgid,+kill --ambient-caps +setuid,+setgid,+kill \
    gozzard agent doctor --data /var/lib/gozzard-agent --policy /etc/gozzard/policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := makeAbsolute(&o.Data, &o.Policy); err != nil {
				return failed(err)
			}
			o.Version = version
			all, err := doctor.Host(o)
			if err != nil {
				return failed(err)
			}
			return report(cmd.OutOrStdout(), catalogueIn(cmd.Context()), all)
		},
	}

	cmd.Flags().StringVar(&o.Data, "data", "./agent", "state folder of the agent")
	cmd.Flags().StringVar(&o.Policy, "policy", "",
		"policy file of this host (default: policy.yaml in /etc/gozzard or in the state folder, as the agent finds it)")
	return cmd
}
