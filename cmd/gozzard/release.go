package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// newReleaseCommand is `gozzard release`.
func newReleaseCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Upgrade the agents of the fleet in stages",
		Long: `Upgrade the agents of enrolled hosts to a release of this program. A release is made and signed
elsewhere ("make release" with RELEASE_KEY). The server stores it and orders the hosts to install
it, in stages. Each host checks the signature with the release key that its owner put into
release.pub of the agent's state folder. So no server can make a host run a program that this key
did not sign, or an older version. "gozzard agent update --help" has the rules.

An upgrade asks the hosts of its first stage and waits until each of them runs the release and is
connected. Then the next stage follows. The upgrade stops with a reason when a host rejects the
release, goes back to its old program, or does not finish within 5 minutes (server
--release-patience). Hosts that are offline at their turn are skipped. This needs the role admin on
everything, and every step is in the audit.`,
	}
	cmd.AddCommand(newPublishCommand(env), newReleaseListCommand(env), newRollCommand(env), newRollStatusCommand(env),
		env.rollCommand("approve VERSION", "Approve an upgrade that another person created", `Approve an upgrade that waits for a second person (server --release-two-person). Its creator cannot
approve it. A user that is only named by an app counts as that app: log in, or use a personal token.`, "approved"),
		env.rollCommand("stop VERSION", "Stop an upgrade",
			"Stop the running upgrade to a release: no further host is asked. Hosts that were already asked may still finish.",
			"stopped"),
		env.accountCommand("remove VERSION", "Remove a release from the server",
			"Remove a release and its programs from the server. Hosts that run it keep it.",
			"  gozzard release remove 1.2.3", func(ctx context.Context, c *client.Client, version string) error {
				return c.RemoveRelease(ctx, version)
			}))

	return cmd
}

func newPublishCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "publish FOLDER",
		Short: "Upload a release to the server",
		Long: `Upload a release from a folder that "make release" wrote: the manifest (release.json), its signature
(release.json.sig) and the programs. Files that the server already has are not sent again. This
updates no host: see "gozzard release roll".`,
		Example: "  gozzard release publish dist", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifest, signature, err := selfupdate.Folder(args[0]).Manifest(cmd.Context())
			if err != nil {
				return failed(fmt.Errorf("cannot read the release in %s: %w", args[0], err))
			}
			if _, err := release.Parse(manifest); err != nil {
				return failed(err)
			}
			return env.withClient(func(c *client.Client) error {
				return env.publish(cmd.Context(), c, args[0],
					manifest, signature)
			})
		},
	}
}

func (env *cliEnv) publish(ctx context.Context, c *client.Client, dir string, manifest, signature []byte) error {
	r, err := c.Publish(ctx, manifest, signature)
	if err != nil {
		return err
	}

	for _, f := range r.Files {
		if !f.Missing {
			continue
		}
		if err := upload(ctx, c, r.Version, filepath.Join(dir, filepath.Base(f.Name)), f); err != nil {
			return fmt.Errorf("cannot upload %s: %w", f.Name, err)
		}
		env.remark("%s: uploaded", f.Name)
	}

	return written(fmt.Fprintf(env.out, "release %s is published for %d platforms, until %s\n", r.Version,
		len(r.Files), r.Expires.Format(time.RFC3339)))
}

func upload(ctx context.Context, c *client.Client, version, path string, f client.ReleaseFile) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || st.Size() != f.Size {
		return fmt.Errorf("%s does not have the size in the manifest, %d bytes", path, f.Size)
	}
	return c.UploadRelease(ctx, version, f, file)
}

func newReleaseListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use: "list", Short: "List the releases that were published",
		Long: "List the releases that were published, the newest first.", Example: "  gozzard release list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Releases(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, map[string]any{"releases": list})
				}

				t := newTable("VERSION", "PUBLISHED", "BY", "EXPIRES", "PLATFORMS", "MISSING")
				for _, r := range list {
					missing := 0
					for _, f := range r.Files {
						if f.Missing {
							missing++
						}
					}
					t.add(r.Version, r.Published.Format(time.RFC3339), r.By, r.Expires.Format(time.RFC3339),
						strconv.Itoa(len(r.Files)), strconv.Itoa(missing))
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

func newRollCommand(env *cliEnv) *cobra.Command {
	var in client.NewRoll
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

				r, err := c.CreateRoll(cmd.Context(), in)
				if err != nil {
					return err
				}

				return env.showRoll(&r, &output)
			})
		},
	}

	cmd.Flags().IntSliceVar(&in.Stages, "stages", []int{1, 10, 100}, "`PERCENTS` of the hosts, rising to 100")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "only these `HOSTS`: agent ids, addresses, or cloud:ip")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

func newRollStatusCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use: "status", Short: "Show the progress of the newest upgrade",
		Long: "Show the progress of the newest upgrade and the state of each of its hosts.", Example: "  gozzard release status",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Rolls(cmd.Context(), 1)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					return &exitError{exitNoMatch, fmt.Errorf("there was no upgrade yet")}
				}
				return env.showRoll(&list[0], &output)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// rollCommand is a command that changes the open roll of a release.
func (env *cliEnv) rollCommand(use, short, long, state string) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: "  gozzard release " + use[:len(use)-len("VERSION")] + "1.2.3",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				r, err := c.SetRoll(cmd.Context(), args[0], state)
				if err != nil {
					return err
				}
				return env.showRoll(&r, &output)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// showRoll prints a roll: in words, and its hosts below.
func (env *cliEnv) showRoll(r *client.Roll, output *outputFlag) error {
	if output.structured() {
		return output.write(env.out, r)
	}

	counts := map[string]int{}
	for _, h := range r.Hosts {
		counts[h.State]++
	}

	words := fmt.Sprintf("upgrade %d to release %s is %s: %d of %d hosts have it", r.ID, r.Version, r.State,
		counts["done"], len(r.Hosts))

	if r.Reason != "" {
		words += "; " + r.Reason
	}
	if r.State == "waiting" {
		words += "; it was created by " + r.By + " and another person must approve it: gozzard release approve " + r.Version
	}
	if err := written(fmt.Fprintln(env.out, printable(words))); err != nil {
		return err
	}

	t := newTable("AGENT", "STAGE", "STATE", "REASON")
	for _, h := range r.Hosts {
		t.add(string(h.Agent), strconv.Itoa(h.Stage)+" %", h.State, printable(h.Reason))
	}

	return t.write(env.out)
}
