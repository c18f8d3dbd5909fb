package main

import (
	"errors"
	"os"
	"time"

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
hangs, everything else succeeds. Every host verifies the signature of every command.

With --enrol-url and --token-file the hosts enrol first, each with its own key and certificate, and connect
over TLS to the servers of the installation. A large fleet runs in several processes: each has its own
--first, --hosts and --data.`,
		Example: `  gozzard sim --hosts 2000 --secret-file ./data/join.secret --data /dev/shm/sim
  gozzard sim --hosts 2000 --first 2000 --enrol-url https://10.0.0.1:8443 --token-file token --data /dev/shm/sim2
  gozzard sim --hosts 100 --processes 20 --churn 5 --failing 0.02 --slow 0.1 --slow-by 3s --secret-file ./data/join.secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := applySettings(cmd); err != nil {
				return err
			}

			log, err := logs.logger(os.Stderr)
			if err != nil {
				return err
			}
			o.Log, o.Fatal = log, fatal(log)
			if err := simMembers(cmd, &o, secretFile); err != nil {
				return err
			}
			return failed(sim.RunFleet(cmd.Context(), o))
		},
	}

	f := cmd.Flags()
	f.IntVar(&o.Hosts, "hosts", 100, "number of hosts")
	f.IntVar(&o.Cloud, "cloud", 0, "cloud area of the hosts")
	f.IntVar(&o.First, "first", 0, "number of the first host")
	f.StringVar(&o.Server, "server", "127.0.0.1:4230", "address of the server that agents connect to")
	f.StringVar(&secretFile, "secret-file", "", "file with the join secret of the server")
	f.StringVar(&o.API, "enrol-url", "", "`URL` of a server at which the hosts enrol; several with commas between them")
	f.StringVar(&o.TokenFile, "token-file", "", "`FILE` with the token, readable by its owner only")
	f.IntVar(&o.Processes, "processes", 0, "processes that run on each host from the beginning: sim:process-00 and so on")
	f.Float64Var(&o.Churn, "churn", 0, "processes that end by themselves in a second, in the whole fleet")
	f.Float64Var(&o.Reconnects, "reconnects", 0, "hosts that lose their connection in a second, in the whole fleet")
	f.Float64Var(&o.Failing, "failing", 0, "share of hosts on which every command fails, such as 0.05")
	f.Float64Var(&o.Slow, "slow", 0, "share of hosts on which every command takes longer, such as 0.1")
	f.DurationVar(&o.SlowBy, "slow-by", 5*time.Second, "how much longer commands take on slow hosts")
	f.StringVar(&o.Dir, "data", "./sim", "folder for the state of the agents")
	logs.register(cmd, "warn")
	return cmd
}

// simMembers says how the simulated hosts join: with certificates, or with the secret of a server on this machine.
func simMembers(cmd *cobra.Command, o *sim.FleetOptions, secretFile string) (err error) {
	switch {
	case o.API != "" && secretFile != "":
		return usage("use --enrol-url, or --secret-file")
	case o.API == "" && o.TokenFile != "":
		return usage("--token-file is for --enrol-url")
	case o.API != "":
		if !cmd.Flags().Changed("server") {
			o.Server = "" // those that are named at the enrolment
		}
		return nil
	case secretFile == "":
		return errors.New("--secret-file is required: the file join.secret in the data folder of the server")
	}
	o.Secret, o.ServerKey, err = agentd.ReadJoinFile(secretFile)
	return failed(err)
}
