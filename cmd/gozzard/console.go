package main

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newConsoleCommand is `gozzard console`.
func newConsoleCommand(env *cliEnv) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Print a link that opens the console in a browser, signed in",
		Long: `Print a link that opens the console in a browser on the machine of the server. The link works once,
for one minute. The session has the rights of your credentials. From another machine, open
/console/ of the server in a browser and sign in with a name and a password.`,
		Example: `  gozzard console
  gozzard console --open`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withClient(func(c *client.Client) error {
				link, err := c.ConsoleLink(cmd.Context())
				if err != nil {
					return err
				}
				if open {
					err := openBrowser(cmd.Context(), link.URL)
					if err == nil {
						return nil
					}
					env.remark("cannot start a browser, open the link by hand: %v", err)
				}
				return env.say("%s\n", printable(link.URL))
			})
		},
	}

	cmd.Flags().BoolVar(&open, "open", false, "start the browser with the link instead of printing it")
	return cmd
}

// openBrowser starts the browser of the desktop.
func openBrowser(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	return exec.CommandContext(ctx, name, args...).Run()
}
