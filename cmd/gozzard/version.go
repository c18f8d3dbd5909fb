package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// newVersionCommand is `gozzard version`.
func newVersionCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Example: `  gozzard version
  gozzard version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.check(); err != nil {
				return err
			}

			if output.structured() {
				return output.write(env.out, struct {
					Version string `json:"version"`
					Go      string `json:"go"`
					OS      string `json:"os"`
					Arch    string `json:"arch"`
				}{version, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}

			return env.say("gozzard %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS,
				runtime.GOARCH)
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}
