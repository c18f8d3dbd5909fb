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
release.pub beside the policy of the host. So no server can make a host run a program that this key
did not sign, or an older version. "gozzard agent update --help" has the rules.

An upgrade asks the hosts of its first stage and waits until each of them runs the release and is
connected. Then the next stage follows. The upgrade stops with a reason when a host rejects the
release, goes back to its old program, or does not finish within 5 minutes (server
--release-patience). Hosts that are offline at their turn are skipped. This needs the role admin on
everything, and every step is in the audit.`,
	}
	cmd.AddCommand(newReleasePublishCommand(env), newReleaseListCommand(env), newReleaseRollCommand(env),
		newReleaseStatusCommand(env),
		env.releaseStateCommand("approve VERSION", "Approve an upgrade that another person created",
			`Approve an upgrade that waits for a second person (server --release-two-person). Its creator cannot
approve it. A user that is only named by an app counts as that app: log in, or use a personal token.`, "approved"),
		env.releaseStateCommand("stop VERSION", "Stop an upgrade",
			`Stop the running upgrade to a release: no further host is asked. Hosts that were already asked may
still finish.`,
			"stopped"),
		env.accountCommand("remove VERSION", "Remove a release from the server",
			"Remove a release and its programs from the server. Hosts that run it keep it.",
			"  gozzard release remove 1.2.3", func(ctx context.Context, c *client.Client, version string) error {
				return c.RemoveRelease(ctx, version)
			}))

	return cmd
}

// newReleasePublishCommand is `gozzard release publish`.
func newReleasePublishCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "publish FOLDER",
		Short: "Upload a release to the server",
		Long: `Upload a release from a folder that "make release" wrote: the manifest (release.json), its signature
(release.json.sig) and the programs. Files that the server already has are not sent again. This
updates no host: see "gozzard release roll".`,
		Example: "  gozzard release publish dist",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Read the release before the server is asked.
			manifest, signature, err := selfupdate.Folder(args[0]).Manifest(cmd.Context())
			if err != nil {
				return failed(fmt.Errorf("cannot read the release in %s: %w", args[0], err))
			}
			if _, err := release.Parse(manifest); err != nil {
				return failed(err)
			}
			return env.withClient(func(c *client.Client) error {
				return env.publish(cmd.Context(), c, args[0], manifest, signature)
			})
		},
	}
}

// publish sends a manifest, and the programs that the server does not have.
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

	return env.say("release %s is published for %d platforms, until %s\n", r.Version,
		len(r.Files), r.Expires.Format(time.RFC3339))
}

// upload sends one program.
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

// newReleaseListCommand is `gozzard release list`.
func newReleaseListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the published releases",
		Long: `List the published releases, the newest first. MISSING is the number of programs that were not
uploaded.`,
		Example: "  gozzard release list",
		Args:    cobra.NoArgs,
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
