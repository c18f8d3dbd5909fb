// Command gozzard is the fleet process manager: server, agent and command line in one program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	_ "time/tzdata" // time zones of periodic processes, for hosts without zone files

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/adopt"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/language"
)

// version is set by the linker.
var version = "dev"

// main runs the program until its end, or until SIGINT or SIGTERM.
func main() {
	adopt.Serve()
	agentd.ServeGuard() // first: a guard needs nothing else of this program

	ctx, stop := untilSignal(context.Background())
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string) int {
	chinese := catalogueOf(os.Getenv)
	root := newRootIn(chinese)
	root.SetArgs(args)
	err := checkGroup(root, args)
	if err == nil {
		err = root.ExecuteContext(withCatalogue(ctx, chinese))
	}
	if err == nil {
		return exitOK
	}

	var ex *exitError
	if errors.As(err, &ex) {
		if ex.err != nil {
			fmt.Fprintln(os.Stderr, "gozzard:", errorText(chinese, ex.err)+adviceText(chinese, ex.err))
		}
		return ex.code
	}

	fmt.Fprintln(os.Stderr, "gozzard:", errorText(chinese, err))
	return exitUsage // errors of cobra are about flags and arguments
}

// newRoot is the command `gozzard` with all its verbs, in English.
func newRoot() *cobra.Command { return newRootIn(nil) }

// newRootIn is newRoot with Chinese texts, or English ones if there is no catalogue.
func newRootIn(chinese *language.Catalogue) *cobra.Command {
	root := &cobra.Command{
		Use:   "gozzard",
		Short: "Start, supervise and watch the processes of a fleet",
		Long: `Gozzard (牧鹅人) supervises long-lived processes on many hosts. It starts, stops and restarts them, and
shows what is running where. BlueKing GSE clients can use it unchanged.

To try it:     gozzard dev                      a server and an agent in one process
               gozzard ps                       what is running where
In production: gozzard server, gozzard agent    one server, and an agent on every host`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.AddCommand(newDevCommand(), newServerCommand(), newAgentCommand(), newRelayCommand(), newSimCommand())
	addClientCommands(root, chinese)
	explainArguments(root)
	translateHelp(root, chinese)
	return root
}
