package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// What a server should have.
const (
	serverWantedSpace = 1 << 30
	serverNeededSpace = 64 << 20
	authorityWarns    = 180 * 24 * time.Hour
	certificateWarns  = 14 * 24 * time.Hour
)

// serverDoctor looks at a server from its own machine.
type serverDoctor struct {
	data     string
	backups  string
	maxAge   time.Duration
	cert     string
	now      time.Time
	findings []finding
}

// newServerDoctorCommand is `gozzard doctor`.
func newServerDoctorCommand(env *cliEnv) *cobra.Command {
	var d serverDoctor
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
			d.now = env.now()
			return report(cmd.OutOrStdout(), d.examine(cmd.Context()))
		},
	}

	f := cmd.Flags()
	f.StringVar(&d.data, "data", "./data", "data `FOLDER` of the server")
	f.StringVar(&d.backups, "backup-to", "",
		"`FOLDER` of the backups (default: the last one that is noted in the data folder counts)")
	f.DurationVar(&d.maxAge, "backup-max-age", 48*time.Hour, "how old the newest backup may be")
	f.StringVar(&d.cert, "tls-cert", "", "certificate `FILE` of the API, when the server was given one")
	return cmd
}

func (d *serverDoctor) add(word verdictWord, what, format string, args ...any) {
	d.findings = append(d.findings, finding{word, what, fmt.Sprintf(format, args...)})
}

func (d *serverDoctor) examine(ctx context.Context) []finding {
	st, err := os.Stat(d.data)
	if err != nil || !st.IsDir() {
		d.add(findFail, "data",
			"%s is not a folder that can be looked at (%v): give the one of the server with --data", d.data, err)
		return d.findings
	}

	d.folder(st)
	d.findings = append(d.findings, checkServerDisk(d.data)...)
	d.space()
	d.record(ctx)
	d.backup()
	d.keys()
	d.certificates()
	d.findings = append(d.findings, checkClock(d.now))
	return d.findings
}

// folder: secrets lie in it.
func (d *serverDoctor) folder(st fs.FileInfo) {
	if runtime.GOOS == "windows" {
		return // modes say nothing there
	}

	var open []string

	if st.Mode().Perm()&0o077 != 0 {
		open = append(open, fmt.Sprintf("chmod 700 %s", d.data))
	}

	for _, name := range []string{backup.RecordFile, backup.AuthorityFile, backup.SigningFile, backup.JoinFile,
		"credentials.json"} {
		if st, err := os.Lstat(filepath.Join(d.data, name)); err == nil &&
			(st.Mode().Perm()&0o077 != 0 || !st.Mode().IsRegular()) {
			open = append(open, fmt.Sprintf("chmod 600 %s", filepath.Join(d.data, name)))
		}
	}

	if len(open) > 0 {
		d.add(findFail, "data", "others can read what only the server may: %s", strings.Join(open, "; "))
		return
	}

	d.add(findOK, "data", "%s and its secrets are the server's alone", d.data)
}

func (d *serverDoctor) space() {
	free, err := backup.FreeSpace(d.data)
	var record int64

	if st, err := os.Stat(filepath.Join(d.data, backup.RecordFile)); err == nil {
		record = st.Size()
	}

	switch {
	case err != nil:
		d.add(findFail, "space", "cannot look for free space: %v", err)
	case free < serverNeededSpace:
		d.add(findFail, "space",
			"%d MiB are free, at least %d are needed: new operations are refused when the disk is full", free>>20,
			serverNeededSpace>>20)
	case free < max(serverWantedSpace, 2*uint64(record)):
		d.add(findWarn, "space", "%d MiB are free, %d are advised: a backup needs a copy of the record for a while",
			free>>20, max(serverWantedSpace, 2*uint64(record))>>20)
	default:
		d.add(findOK, "space", "%d MiB are free", free>>20)
	}
}

func (d *serverDoctor) record(ctx context.Context) {
	path := filepath.Join(d.data, backup.RecordFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		d.add(findWarn, "record", "there is none yet: the first start of the server makes it")
		return
	}

	v, err := sqlstore.Look(ctx, path)
	if err != nil {
		d.add(findFail, "record", "%v", err)
		return
	}

	d.add(findOK, "record", "sound: %d hosts, %d processes, %d tasks (%d attempts open), %d audit rows", v.Hosts,
		v.Processes, v.Tasks, v.Open, v.AuditRows)
	level, err := sqlstore.Synchronous(ctx, path)
	d.findings = append(d.findings, checkSync(level, v.Journal, err))

	if !v.Restored.IsZero() {
		d.add(findWarn, "restore",
			"the record came out of a backup of %s and hosts are kept out: look at them, then run gozzard hosts confirm-restore", v.Restored.Format(time.RFC3339))
	}

	if n := v.Members["pending"] + v.Members["quarantined"]; n > 0 {
		d.add(findWarn, "hosts",
			"%d wait for approval, %d are in quarantine: see gozzard hosts, then approve or revoke them",
			v.Members["pending"], v.Members["quarantined"])
	}
}

// checkSync: what the server acknowledged must be on the disk.
func checkSync(level int, journal string, err error) finding {
	switch {
	case err != nil:
		return finding{findFail, "sync", err.Error()}
	case level < sqlstore.FullSync:
		return finding{findWarn, "sync",
			fmt.Sprintf("the record is written with synchronous %d, not FULL (%d): after a power cut acknowledged operations may be missing; use a release of this program", level, sqlstore.FullSync)}
	case !strings.EqualFold(journal, "wal"):
		return finding{findWarn, "sync",
			fmt.Sprintf("the record keeps its log as %q, not WAL: another program has changed it; the next start of the server sets it right", journal)}
	}
	return finding{findOK, "sync", "every commit is on the disk before it is acknowledged"}
}

func (d *serverDoctor) backup() {
	const how = "gozzard server --backup-to DIR --backup-recipient age1…, or gozzard backup create"
	var at time.Time
	var where string
	var err error

	if d.backups != "" {
		where = d.backups
		at, err = backup.Newest(d.backups)
	} else {
		var n backup.Note
		n, err = backup.LastNote(d.data)
		at, where = n.Taken, n.File
	}

	switch age := d.now.Sub(at); {
	case errors.Is(err, fs.ErrNotExist):
		d.add(findWarn, "backup", "there is none: when this disk is lost, so is the fleet. Make some: %s", how)
	case err != nil:
		d.add(findWarn, "backup", "cannot tell of any: %v", err)
	case age > d.maxAge:
		d.add(findWarn, "backup", "the newest is %s old (%s), at most %s are advised: %s", span(age), where,
			span(d.maxAge), how)
	default:
		d.add(findOK, "backup", "the newest is %s old (%s); try it out with gozzard backup verify", span(age), where)
	}
}

func (d *serverDoctor) keys() {
	keys, err := signing.Keys(d.data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(findWarn, "signing key", "there is none yet: the first start of the server makes it")
	case err != nil:
		d.add(findFail, "signing key", "%v", err)
	default:
		k := keys[len(keys)-1]
		d.add(findOK, "signing key", "epoch %d, made %s", k.Key.Epoch, k.At.Format(time.RFC3339))
	}
}

func (d *serverDoctor) certificates() {
	d.certificate("authority", filepath.Join(d.data, backup.AuthorityFile), authorityWarns,
		"every host has to join again after that: plan it")
	if d.cert != "" {
		d.certificate("API", d.cert, certificateWarns,
			"callers refuse the server after that: put a new one in its place")
	}
}

func (d *serverDoctor) certificate(what, path string, warns time.Duration, then string) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && what == "authority" {
		return // agents are on this machine only
	}
	if err != nil {
		d.add(findFail, what, "cannot read its certificate: %v", err)
		return
	}

	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			d.add(findFail, what, "%s has a certificate that cannot be read: %v", path, err)
			return
		}
		d.findings = append(d.findings, checkExpiry(what, cert.NotAfter, d.now, warns, then))
		return
	}

	d.add(findFail, what, "%s has no certificate", path)
}

func checkExpiry(what string, end, now time.Time, warns time.Duration, then string) finding {
	left := end.Sub(now)
	switch {
	case left <= 0:
		return finding{findFail, what, fmt.Sprintf("its certificate is over since %s: %s",
			end.UTC().Format(time.RFC3339), then)}
	case left < warns:
		return finding{findWarn, what, fmt.Sprintf("its certificate is over in %s: %s", span(left), then)}
	}
	return finding{findOK, what, "its certificate counts until " + end.UTC().Format(time.RFC3339)}
}
