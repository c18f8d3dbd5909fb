package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/test/sim"
)

// newSimCommand is `gozzard sim`.
func newSimCommand() *cobra.Command {
	var o sim.FleetOptions
	var logs logFlags
	var secretFile string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run a simulated fleet against a server, to test it at scale",
		Long: `Run many simulated hosts in one process: the real agent with its journal and its connection, on
machines that exist only in memory. Host i has an address 127.1.a.b (the first is 127.1.1.1) and the
agent id sim-00000 and so on. Commands of a definition are not run: "fail 3 text" fails, "hang"
hangs, everything else succeeds.`,
		Example: `  gozzard sim --hosts 2000 --secret-file ./data/join.secret --data /dev/shm/sim`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}

			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			if secretFile == "" {
				return errors.New("--secret-file is required: the file join.secret in the data folder of the server")
			}

			o.Log, o.Fatal = log, fatal(log)
			if o.Secret, o.ServerKey, err = agentd.ReadJoinFile(secretFile); err != nil {
				return failed(err)
			}

			return failed(sim.RunFleet(cmd.Context(), o))
		},
	}

	f := cmd.Flags()
	f.IntVar(&o.Hosts, "hosts", 100, "number of hosts")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of the hosts")
	f.StringVar(&o.Server, "server", "127.0.0.1:4230", "address of the server that agents connect to")
	f.StringVar(&secretFile, "secret-file", "", "file with the join secret of the server")
	f.StringVar(&o.Dir, "data", "./sim", "folder for the state of the agents")
	logs.register(cmd, "warn")
	return cmd
}
