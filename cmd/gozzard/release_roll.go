package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newReleaseRollCommand is `gozzard release roll`.
func newReleaseRollCommand(env *cliEnv) *cobra.Command {
	var in client.NewUpgrade
	var hosts []string
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "roll VERSION",
		Short: "Upgrade hosts to a release, in stages",
		Long: `Upgrade the enrolled hosts that are online, or the hosts that --host names, to a published release.
--stages are rising percentages of the hosts; the last is 100, and a stage has at least one host.
The command returns at once; "gozzard release status" shows the progress. Only one upgrade can run
at a time.`,
		Example: `  gozzard release roll 1.2.3
  gozzard release roll 1.2.3 --stages 5,50,100
  gozzard release roll 1.2.3 --host 0:10.0.0.2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}

			in.Version = args[0]
			return env.withClient(func(c *client.Client) error {
				if len(hosts) > 0 {
					members, err := c.Members(cmd.Context())
					if err != nil {
						return err
					}
					for _, h := range hosts {
						id, err := findMember(members, h)
						if err != nil {
							return err
						}
						in.Agents = append(in.Agents, id)
					}
				}

				r, err := c.CreateUpgrade(cmd.Context(), in)
				if err != nil {
					return err
				}

				return env.printUpgrade(&r, &output)
			})
		},
	}

	cmd.Flags().IntSliceVar(&in.Stages, "stages", []int{1, 10, 100}, "`PERCENTS` of the hosts, rising to 100")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "only these `HOSTS`: agent ids, host names, addresses, or cloud:ip")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// newReleaseStatusCommand is `gozzard release status`.
func newReleaseStatusCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the progress of the newest upgrade",
		Long:    "Show the progress of the newest upgrade and the state of each of its hosts.",
		Example: "  gozzard release status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Upgrades(cmd.Context(), 1)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					return &exitError{exitNoMatch, errors.New("there was no upgrade yet")}
				}
				return env.printUpgrade(&list[0], &output)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// releaseStateCommand is a command that changes the state of the open upgrade to a release.
func (env *cliEnv) releaseStateCommand(use, short, long, state string) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: "  gozzard release " + use[:len(use)-len("VERSION")] + "1.2.3",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				r, err := c.SetUpgrade(cmd.Context(), args[0], state)
				if err != nil {
					return err
				}
				return env.printUpgrade(&r, &output)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// printUpgrade prints an upgrade as a sentence, and the table of its hosts.
func (env *cliEnv) printUpgrade(r *client.Upgrade, output *outputFlag) error {
	if output.structured() {
		return output.write(env.out, r)
	}

	// The sentence.
	counts := map[string]int{}
	for _, h := range r.Hosts {
		counts[h.State]++
	}

	words := env.text("upgrade %d to release %s is %s: %d of %d hosts have it", r.ID, r.Version, r.State,
		counts["done"], len(r.Hosts))
	if r.Reason != "" {
		words += "; " + r.Reason
	}
	if r.State == "waiting" {
		words += env.text("; it was created by %s and another person must approve it: gozzard release approve %s", r.By, r.Version)
	}
	if err := checkWrite(fmt.Fprintln(env.out, printable(words))); err != nil {
		return err
	}

	// The hosts.
	t := newTable("AGENT", "STAGE", "STATE", "REASON")
	for _, h := range r.Hosts {
		t.add(string(h.Agent), strconv.Itoa(h.Stage)+" %", h.State, printable(h.Reason))
	}

	return t.write(env.out)
}
