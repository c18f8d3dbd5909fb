package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/doctor"
)

// newServerDoctorCommand is `gozzard doctor`.
func newServerDoctorCommand(env *cliEnv) *cobra.Command {
	var o doctor.ServerOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what a server lacks: its record, disk, backups, certificates",
		Long: `Look at the data folder of a server, running or not, and say in words what it lacks and what to do. Nothing is changed. Run it on the server's machine as its
account. OK is as it should be, WARN works with a risk, FAIL does not work or not for long; the exit code is 1 when there is a FAIL. For a host there is
"gozzard agent doctor".`,
		Example: `  gozzard doctor --data /var/lib/gozzard
  gozzard doctor --data /var/lib/gozzard --backup-to /backup --tls-cert /etc/gozzard/api.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Now = env.now()
			return report(cmd.OutOrStdout(), doctor.Server(cmd.Context(), o))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "./data", "data `FOLDER` of the server")
	f.StringVar(&o.Backups, "backup-to", "",
		"`FOLDER` of the backups (default: the last one that is noted in the data folder counts)")
	f.DurationVar(&o.BackupMaxAge, "backup-max-age", 48*time.Hour, "how old the newest backup may be")
	f.StringVar(&o.Cert, "tls-cert", "", "certificate `FILE` of the API, when the server was given one")
	return cmd
}
