package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/language"
)

// allowFilesHelp is the help of --allow-files.
const allowFilesHelp = "`FOLDER` below which the server may write and read files, as the accounts of the policy without root; may be repeated"

// newAgentPolicyCommand is `gozzard agent policy`.
func newAgentPolicyCommand() *cobra.Command {
	var o agentd.PolicyOptions
	var data stateFolder
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show the policy of this host, or allow more accounts and folders",
		Long: `Show the policy of this host: what the server may do here. A host that has none gets its first one: as
/etc/gozzard/policy.yaml for an agent of root with its state in /var/lib, and otherwise in the state
folder.

--allow-user and --allow-path allow the accounts and folders of your processes, --allow-files the folders
of their configuration files. --allow-root allows commands as root, and --default-user names the account
of definitions that name none. The change applies from the next operation. A policy that a person has
changed stays as it is: then the command prints the lines that are missing.

Run it as the account of the agent: as root for the modes root and cap (with --policy
/etc/gozzard/policy.yaml).`,
		Example: `  gozzard agent policy --data /var/lib/gozzard-agent
  gozzard agent policy --data /var/lib/gozzard-agent --allow-user www-data --allow-path /var/www`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data.find(cmd)
			o.Texts = policyTexts(cmd.Context())
			path, text, changed, err := agentd.FitPolicy(data.folder, o)
			if err != nil {
				return failed(err)
			}
			if changed {
				cmd.PrintErr(textIn(cmd.Context(), "%s is written\n", path))
			}
			return checkWrite(fmt.Fprintf(cmd.OutOrStdout(), "# %s\n%s", path, policyText(catalogueIn(cmd.Context()), string(text))))
		},
	}

	f := cmd.Flags()
	data.register(cmd)
	f.StringVar(&o.File, "policy", "", "policy `FILE` of this host, if the agent is started with --policy")
	f.BoolVar(&o.AllowRoot, "allow-root", false, "allow commands as root")
	f.StringVar(&o.Default, "default-user", "", "`ACCOUNT` of definitions that name none; it is allowed, too")
	f.StringSliceVar(&o.Users, "allow-user", nil, "`ACCOUNT` that commands may run as; may be repeated")
	f.StringSliceVar(&o.Paths, "allow-path", nil, "`FOLDER` that processes may be in; may be repeated")
	f.StringSliceVar(&o.Files, "allow-files", nil, allowFilesHelp)
	return cmd
}

// policyTexts are a new policy in the language of the person that runs the command, and in the others.
func policyTexts(ctx context.Context) []func(string) string {
	in := func(c *language.Catalogue) func(string) string {
		return func(text string) string { return policyText(c, text) }
	}
	if chinese := catalogueIn(ctx); chinese != nil {
		return []func(string) string{in(chinese), in(nil)}
	}
	chinese := sync.OnceValue(language.CommandLine) // needed only for a policy that is there and does not fit
	return []func(string) string{in(nil), func(text string) string { return policyText(chinese(), text) }}
}

// policyText is a policy with the comments that the program writes in the language of the reader.
func policyText(chinese *language.Catalogue, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if at := strings.LastIndex(line, "# "); at >= 0 {
			lines[i] = line[:at+2] + chinese.Text(line[at+2:])
		}
	}
	return strings.Join(lines, "\n")
}
