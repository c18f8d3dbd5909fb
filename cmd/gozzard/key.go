package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/signing"
)

// newKeyCommand is `gozzard key`.
func newKeyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Show and rotate the keys of a server",
		Long: `Agents obey only commands that their server signed, and trust only servers and certificates of their
authority. "status" and "rotate signing|authority" ask the running server and need the role admin on
everything. "list" and "rotate" without a name work on the data folder of the server. Run those on
the machine of the server, as root or as the account of the server. Root acts as that account there.`,
	}
	cmd.AddCommand(newKeyListCommand(env), newKeyStatusCommand(env), newKeyRotateCommand(env))
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			findData(cmd, &data)
			if err := actAsOwner(data, noteWriter{env}); err != nil {
				return failed(err)
			}
			return failed(env.listKeys(data, &output))
		},
	}

	registerData(cmd, &data)
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// keyRow is one key as it is listed.
type keyRow struct {
	Epoch uint64      `json:"epoch"`
	ID    string      `json:"id"`
	Made  client.Time `json:"made"`
	Signs bool        `json:"signs"` // the server signs with it, at the latest from its next start on
	Key   string      `json:"key"`
}

// listKeys prints the keys in a data folder, the newest last.
func (env *cliEnv) listKeys(data string, output *outputFlag) error {
	keys, err := signing.Keys(data)
	if err != nil {
		return err
	}

	rows := make([]keyRow, 0, len(keys))
	for i, k := range keys {
		rows = append(rows, keyRow{Epoch: k.Key.Epoch, ID: k.Key.ID().String(), Made: client.At(k.At), Signs: i == len(keys)-1,
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
