package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/doctor"
)

// newAgentDoctorCommand is `gozzard agent doctor`.
func newAgentDoctorCommand() *cobra.Command {
	var o doctor.HostOptions
	var data stateFolder
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host, the settings and the policy of its agent, and whether the agent runs",
		Long: `Check this host as the agent would, and report what is missing: the host itself, the state folder, the
settings, the policy, and whether the agent runs and is connected. Nothing is changed. Run it as the
account of the agent and with its capabilities: they decide the mode of the agent. The exit code is
1 when a line is marked FAIL.`,
		Example: `  gozzard agent doctor --data /var/lib/gozzard-agent
  setpriv --reuid gozzard --regid gozzard --init-groups \
    --inh-caps +setuid,+setgid,+kill --ambient-caps +setuid,+setgid,+kill \
    gozzard agent doctor --data /var/lib/gozzard-agent --policy /etc/gozzard/policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data.find(cmd)
			o.Data = data.folder
			if err := makeAbsolute(&o.Data, &o.Policy); err != nil {
				return failed(err)
			}
			if err := readAgentSettings(&o); err != nil {
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

	data.register(cmd)
	cmd.Flags().StringVar(&o.Policy, "policy", "",
		"policy file of this host (default: policy.yaml in /etc/gozzard or in the state folder, as the agent finds it)")
	cmd.Flags().StringVar(&o.Settings, "config", "",
		"`FILE` with the settings of the agent (default: /etc/gozzard/agent.yaml for the state folder of the units)")
	return cmd
}

// readAgentSettings reads and checks the settings as an agent would at its start. The environment of this command is not
// that of the agent.
func readAgentSettings(o *doctor.HostOptions) error {
	if o.Settings == "" {
		o.Settings = agentd.SettingsFile(o.Data)
	}
	if err := makeAbsolute(&o.Settings); err != nil {
		return err
	}

	var s agentd.ServeOptions
	var logs logFlags
	var socket, group string
	cmd := &cobra.Command{Use: "agent"}
	(&cobra.Command{Use: "gozzard"}).AddCommand(cmd) // so that messages name the command by its path
	registerAgent(cmd.Flags(), &s, &socket, &group)
	logs.register(cmd, "info")
	err := applySettingsOf(cmd, o.Settings, func(string) (string, bool) { return "", false })
	if invalid, ok := errors.AsType[yaml.Error](err); ok { // the file and the place on one line
		err = fmt.Errorf("cannot read the configuration %s: line %d: %s", o.Settings, invalid.GetToken().Position.Line,
			invalid.GetMessage())
	}
	if err != nil {
		o.Invalid = []error{err}
		o.Socket, err = agentd.SocketPath(o.Data, agentd.SocketName)
		return err
	}

	// Check the values together, as the start of the agent does.
	_, logErr := logs.logger(io.Discard)
	found, socketErr := agentd.FindSocket(o.Data, socket, group, cmd.Flags().Changed("socket"))
	o.Socket, o.Policy = found.Path, cmp.Or(o.Policy, s.Policy.File)
	for _, err := range append(s.Check(), logErr, socketErr) {
		if err != nil {
			o.Invalid = append(o.Invalid, inSettings(o.Settings, err))
		}
	}
	return nil
}

// inSettings adds the line of the file to an error that begins with the flag of a setting.
func inSettings(path string, err error) error {
	file, readErr := readSettings(path)
	if path == "" || readErr != nil {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "--"), " ")
	if line := file.lines[strings.TrimSuffix(name, ":")]; line > 0 {
		return fmt.Errorf("configuration %s, line %d: %w", path, line, err)
	}
	return fmt.Errorf("configuration %s: %w", path, err)
}
