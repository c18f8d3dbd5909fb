// Command gozzard is the fleet process manager: server, agent and command line in one program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones of periodic processes, on hosts that have none

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}

	var ex *exitError
	if errors.As(err, &ex) {
		if ex.err != nil {
			fmt.Fprintln(os.Stderr, "gozzard:", ex.err)
		}
		return ex.code
	}

	fmt.Fprintln(os.Stderr, "gozzard:", err)
	return exitUsage // what cobra itself returns is about flags and arguments
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gozzard",
		Short: "Start, keep, watch and report the processes of a fleet",
		Long: `Gozzard (牧鹅人) keeps long-lived processes on many hosts: it starts and stops them, brings back the ones that die,
and tells what is running where. BlueKing GSE clients can use it unchanged.

First look:    gozzard dev                      server and agent in one process
               gozzard ps                       what is running where
For real:      gozzard server, gozzard agent    one server, an agent per host`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.AddCommand(newDevCommand(), newServerCommand(), newAgentCommand(), newSimCommand())
	addClientCommands(root)
	return root
}
