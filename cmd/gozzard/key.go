package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/signing"
)

// newKeyCommand is `gozzard key`.
func newKeyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "List and rotate the key that signs commands",
		Long: `Agents obey only commands that their server signed. These commands work on the data folder of the
server. Run them on the machine and as the account of the server; the server may be running.`,
	}
	cmd.AddCommand(newKeyListCommand(env), newKeyRotateCommand(env))
	return cmd
}

// newKeyListCommand is `gozzard key list`.
func newKeyListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var data string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the signing keys of a server, the newest last",
		Example: `  gozzard key list --data /var/lib/gozzard
  gozzard key list --data /var/lib/gozzard -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return failed(env.listKeys(data, &output))
		},
	}

	cmd.Flags().StringVar(&data, "data", "./data", "data folder of the server")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// keyRow is one key as it is listed.
type keyRow struct {
	Epoch uint64    `json:"epoch"`
	ID    string    `json:"id"`
	Made  time.Time `json:"made"`
	Signs bool      `json:"signs"` // the server signs with it, at the latest from its next start on
	Key   string    `json:"key"`
}

// listKeys prints the keys in a data folder, the newest last.
func (env *cliEnv) listKeys(data string, output *outputFlag) error {
	keys, err := signing.Keys(data)
	if err != nil {
		return err
	}

	rows := make([]keyRow, 0, len(keys))
	for i, k := range keys {
		rows = append(rows, keyRow{Epoch: k.Key.Epoch, ID: k.Key.ID().String(), Made: k.At, Signs: i == len(keys)-1,
			Key: k.Key.String()})
	}

	if output.structured() {
		return output.write(env.out, map[string][]keyRow{"keys": rows})
	}

	t := newTable("EPOCH", "ID", "MADE", "SIGNS")
	for _, r := range rows {
		t.add(fmt.Sprint(r.Epoch), r.ID, r.Made.Format(time.RFC3339), yesNo(r.Signs))
	}

	return t.write(env.out)
}

// newKeyRotateCommand is `gozzard key rotate`.
func newKeyRotateCommand(env *cliEnv) *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Create the next signing key of a server",
		Long: `Create a new signing key. The present key signs the new one, and then its secret is deleted. The
server uses the new key from its next start on. Agents accept it when they connect, and reject the
old key from then on. Processes are not affected.

An offline agent can follow up to 16 rotations. After more than that, or if an old key was stolen
and used before the agents knew the new one, give the agents the new key by hand: stop the agent,
remove server.key in its state folder, and start it with the present join.secret.`,
		Example: `  gozzard key rotate --data /var/lib/gozzard && systemctl restart gozzard-server`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			old, next, err := signing.Rotate(data, nil)
			if err != nil {
				return failed(err)
			}
			return checkWrite(fmt.Fprintf(env.out, "key %s of epoch %d replaces %s; restart the server to use it\n",
				next.ID(), next.Epoch, old.ID()))
		},
	}

	cmd.Flags().StringVar(&data, "data", "./data", "data folder of the server")
	return cmd
}
