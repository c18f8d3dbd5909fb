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
		Short: "Run a simulated fleet against a server, to see how it behaves at size",
		Long: `Run many hosts in one process: the real agent with its journal and its connection, over machines that exist in memory only. Host i answers as
127.1.a.b (the first is 127.1.1.1), its agent id is sim-00000 and so on. Commands of a definition are not run: "fail 3 text" fails, "hang" hangs,
anything else works.`,
		Example: `  gozzard sim --hosts 2000 --server 127.0.0.1:4230 --secret-file ./data/join.secret --data /dev/shm/sim`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := layer(cmd); err != nil {
				return err
			}

			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			if secretFile == "" {
				return errors.New("--secret-file is needed: the file join.secret of the server's data folder")
			}

			o.Log, o.Fatal = log, fatal(log)
			if o.Secret, o.ServerKey, err = agentd.ReadJoinFile(secretFile); err != nil {
				return failed(err)
			}

			return failed(sim.RunFleet(cmd.Context(), o))
		},
	}

	f := cmd.Flags()
	f.IntVar(&o.Hosts, "hosts", 100, "how many hosts to be")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of the hosts")
	f.StringVar(&o.Server, "server", "127.0.0.1:4230", "address of the server for agents")
	f.StringVar(&secretFile, "secret-file", "", "file with the server's join secret")
	f.StringVar(&o.Dir, "data", "./sim", "folder of the agents' state")
	logs.register(f, "warn")
	return cmd
}
