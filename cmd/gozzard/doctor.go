package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/doctor"
	"github.com/gozzard/gozzard/internal/language"
	"github.com/gozzard/gozzard/internal/server"
)

// backupMaxAge is how old the newest backup of a server should be at most.
const backupMaxAge = 48 * time.Hour

// newDoctorCommand is `gozzard doctor`.
func newDoctorCommand(env *cliEnv) *cobra.Command {
	var o doctor.ServerOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a server: record, disk, backups, certificates",
		Long: `Check the data folder of a server, running or not, and report what is wrong and what to do. Nothing
is changed. Run it on the machine of the server, as root or as its account. OK is fine, WARN works with a
risk, FAIL does not work or not for long. The exit code is 1 when a line is marked FAIL. To check a
host, use "gozzard agent doctor".`,
		Example: `  gozzard doctor --data /var/lib/gozzard
  gozzard doctor --data /var/lib/gozzard --backup-to /backup --tls-cert /etc/gozzard/api.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findData(cmd, &o.Data)
			if err := actAsOwner(o.Data, noteWriter{env}); err != nil {
				return failed(err)
			}
			o.Now = env.now()
			return report(cmd.OutOrStdout(), env.chinese, doctor.Server(cmd.Context(), o))
		},
	}

	f := cmd.Flags()
	registerData(cmd, &o.Data)
	f.StringVar(&o.Backups, "backup-to", "",
		"`FOLDER` of the backups (default: use the newest backup that the data folder remembers)")
	f.DurationVar(&o.BackupMaxAge, "backup-max-age", backupMaxAge, "maximum age of the newest backup")
	f.StringVar(&o.Cert, "tls-cert", "", "certificate `FILE` of the API, if the server runs with --tls-cert")
	return cmd
}

// selfCheck makes the checks of `gozzard doctor` inside of a running server.
func selfCheck(o *server.Options) func(context.Context, string) []client.Finding {
	return func(ctx context.Context, data string) []client.Finding {
		all := doctor.Server(ctx, doctor.ServerOptions{Data: data, Backups: o.Backup.To, BackupMaxAge: backupMaxAge,
			Cert: o.Trust.Cert, Now: time.Now()})
		list := make([]client.Finding, 0, len(all))
		for _, f := range all {
			list = append(list, client.Finding{Level: string(f.Level), Check: f.Check, Text: f.Text})
		}
		return list
	}
}

// report prints findings. It fails when one of them is a failure. Levels and names of checks stay as they are.
func report(w io.Writer, chinese *language.Catalogue, all []doctor.Finding) error {
	bad := false
	for _, f := range all {
		bad = bad || f.Level == doctor.Fail
		text := printable(chinese.Message(f.Text))
		if err := checkWrite(fmt.Fprintf(w, "%-4s  %-12s  %s\n", f.Level, f.Check, text)); err != nil {
			return err
		}
	}
	if bad {
		return &exitError{exitFailed, nil}
	}
	return nil
}
