package doctor

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
	"syscall"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
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

// ServerOptions say which server is checked.
type ServerOptions struct {
	Data         string
	Backups      string // the folder of the backups; "": the last one that is noted in Data counts
	BackupMaxAge time.Duration
	Cert         string // of the API; "": the server has none of its own
	Now          time.Time
}

// Server checks the data folder of a server, running or not, on the machine of the server.
func Server(ctx context.Context, o ServerOptions) []Finding {
	d := serverChecks{ServerOptions: o}
	return d.examine(ctx)
}

// serverChecks collects the findings about one server.
type serverChecks struct {
	ServerOptions
	findings []Finding
}

func (d *serverChecks) add(word Level, what, format string, args ...any) {
	d.findings = append(d.findings, Finding{word, what, fmt.Sprintf(format, args...)})
}

func (d *serverChecks) examine(ctx context.Context) []Finding {
	st, err := os.Stat(d.Data)
	if err != nil || !st.IsDir() {
		d.add(Fail, "data",
			"cannot read the folder %s (%v): give the data folder of the server with --data", d.Data, err)
		return d.findings
	}

	d.folder(st)
	d.findings = append(d.findings, checkServerDisk(d.Data)...)
	d.space()
	d.record(ctx)
	d.backup()
	d.keys()
	d.certificates()
	d.findings = append(d.findings, checkClock(d.Now))
	return d.findings
}

// folder checks that no other account can read the secrets.
func (d *serverChecks) folder(st fs.FileInfo) {
	if runtime.GOOS == "windows" {
		return // modes say nothing there
	}

	var open []string
	for _, name := range d.secrets() {
		if st, err := os.Lstat(filepath.Join(d.Data, name)); err == nil &&
			(st.Mode().Perm()&0o077 != 0 || !st.Mode().IsRegular()) {
			open = append(open, fmt.Sprintf("chmod 600 %s", filepath.Join(d.Data, name)))
		}
	}

	// A file of mode 600 is safe in a folder that others can enter.
	mode := st.Mode().Perm()
	switch {
	case len(open) > 0:
		if mode&0o077 != 0 {
			open = append([]string{fmt.Sprintf("chmod 700 %s", d.Data)}, open...)
		}
		d.add(Fail, "data", "other accounts can read the secrets of the server; run: %s", strings.Join(open, "; "))
		return
	case mode&0o077 != 0:
		d.add(Warn, "data", "other accounts can enter %s (mode %04o) and see which files it has. They cannot read its secrets. Run: chmod 700 %s",
			d.Data, mode, d.Data)
		return
	}

	d.add(OK, "data", "only the server's account can read %s and its secrets", d.Data)
}

// secrets are the files of the data folder that only the server's account may read.
func (d *serverChecks) secrets() []string {
	names := []string{backup.RecordFile, enrol.KeyFile, enrol.NextKeyFile, enrol.OldNextFile, backup.SigningFile,
		backup.JoinFile, "credentials.json"}

	// The next start of the server takes the key out of the certificate file of an older program.
	b, err := os.ReadFile(filepath.Join(d.Data, enrol.CertificateFile))
	if err == nil && strings.Contains(string(b), "PRIVATE KEY") {
		names = append(names, enrol.CertificateFile)
	}
	return names
}

func (d *serverChecks) space() {
	free, err := backup.FreeSpace(d.Data)
	var record int64

	if st, err := os.Stat(filepath.Join(d.Data, backup.RecordFile)); err == nil {
		record = st.Size()
	}

	switch {
	case err != nil:
		d.add(Fail, "space", "cannot read the free space: %v", err)
	case free < serverNeededSpace:
		d.add(Fail, "space",
			"%d MiB are free, at least %d are needed: the server rejects new operations when the disk is full", free>>20,
			serverNeededSpace>>20)
	case free < max(serverWantedSpace, 2*uint64(record)):
		d.add(Warn, "space", "%d MiB are free, %d are recommended: a backup makes a temporary copy of the record",
			free>>20, max(serverWantedSpace, 2*uint64(record))>>20)
	default:
		d.add(OK, "space", "%d MiB are free", free>>20)
	}
}

func (d *serverChecks) record(ctx context.Context) {
	place, err := backup.ReadPlace(d.Data)
	if err != nil {
		d.add(Fail, "record", "%v", err)
		return
	}
	if place.Installation != "" {
		d.add(OK, "record", "it is in the database %s, which this command does not check", place.Database)
		return
	}

	path := filepath.Join(d.Data, backup.RecordFile)
	if there, err := d.found(ctx, path); err != nil || !there {
		return
	}

	v, err := sqlstore.Look(ctx, path)
	if err != nil {
		d.add(Fail, "record", "%v", err)
		return
	}

	d.add(OK, "record", "intact: %d hosts, %d processes, %d tasks (%d attempts open), %d audit rows", v.Hosts,
		v.Processes, v.Tasks, v.Open, v.AuditRows)
	d.pages(ctx, path)
	level, err := sqlstore.Synchronous(ctx, path)
	d.findings = append(d.findings, checkSync(level, v.Journal, err))

	if !v.Restored.IsZero() {
		d.add(Warn, "restore",
			"the record was restored from a backup of %s and hosts wait: check gozzard hosts, then run "+
				"gozzard hosts confirm-restore", v.Restored.Format(time.RFC3339))
	}

	if n := v.Members["pending"] + v.Members["quarantined"]; n > 0 {
		d.add(Warn, "hosts",
			"%d wait for approval, %d are in quarantine: check gozzard hosts, then approve or revoke them",
			v.Members["pending"], v.Members["quarantined"])
	}
}

// found reports whether there is a record, and adds why not.
func (d *serverChecks) found(ctx context.Context, path string) (there bool, err error) {
	// A server that lost its record says so in its lock file.
	if pid, lost := sqlstore.Holder(path); lost != "" && alive(pid) {
		d.add(Fail, "record", "the server (pid %d) acknowledges nothing: %s. Put the file back, or stop the server and "+
			"restore a backup", pid, lost)
		return false, nil
	}

	there, err = sqlstore.Exists(ctx, path)
	keys := backup.Traces(d.Data)
	switch {
	case err != nil:
		d.add(Fail, "record", "%v", err)
	case !there && len(keys) > 0:
		d.add(Fail, "record", "it is missing or empty, but there is %s: put %s back, restore a backup, or start the "+
			"server once with --new-record", strings.Join(keys, ", "), path)
	case !there:
		d.add(Warn, "record", "there is none yet: the server makes it at its first start")
	}
	return there, err
}

// pages compares the pages of the record with their checksums.
func (d *serverChecks) pages(ctx context.Context, path string) {
	switch r, err := sqlstore.CheckFile(ctx, path); {
	case errors.Is(err, sqlstore.ErrNoSums):
		d.add(Warn, "pages", "there are no checksums yet: the server makes them at its next start")
	case err != nil:
		d.add(Fail, "pages", "%v", err)
	case !r.Sound():
		d.add(Fail, "pages", "%s: the disk or another program changed them. Restore a backup, and check the disk. If you "+
			"put back a copy of %s yourself, stop the server and remove %s.sums: the next start makes it again", r.String(),
			backup.RecordFile, path)
	default:
		d.add(OK, "pages", "%s", r.String())
	}
}

// checkSync checks that what the server acknowledges is on the disk.
func checkSync(level int, journal string, err error) Finding {
	switch {
	case err != nil:
		return Finding{Fail, "sync", err.Error()}
	case level < sqlstore.FullSync:
		return Finding{Warn, "sync",
			fmt.Sprintf("the record is written with synchronous %d, not FULL (%d): a power cut can lose acknowledged "+
				"operations. Use a release of this program", level, sqlstore.FullSync)}
	case !strings.EqualFold(journal, "wal"):
		return Finding{Warn, "sync",
			fmt.Sprintf("the journal mode of the record is %q, not WAL: another program has changed it. The next start of the "+
				"server corrects it", journal)}
	}
	return Finding{OK, "sync", "every commit is on the disk before it is acknowledged"}
}

func (d *serverChecks) backup() {
	const how = "gozzard server --backup-to DIR --backup-recipient age1…, or gozzard backup create"
	var at time.Time
	var where string
	var err error

	if d.Backups != "" {
		where = d.Backups
		at, err = backup.Newest(d.Backups)
	} else {
		var n backup.Note
		n, err = backup.LastNote(d.Data)
		at, where = n.Taken, n.File
	}

	switch old := d.Now.Sub(at); {
	case errors.Is(err, fs.ErrNotExist) && d.Backups != "":
		d.add(Warn, "backup", "no server has written one to %s: without one, a lost disk means that every host must join again. Use "+
			"gozzard server --backup-to %[1]s --backup-recipient age1…; files of gozzard backup create do not count here", d.Backups)
	case errors.Is(err, fs.ErrNotExist):
		d.add(Warn, "backup", "there is none: without one, a lost disk means that every host must join again. Use %s", how)
	case err != nil:
		d.add(Warn, "backup", "cannot find any: %v", err)
	case old > d.BackupMaxAge:
		d.add(Warn, "backup", "the newest is %s old (%s), at most %s is recommended. Use %s", age(old), where,
			age(d.BackupMaxAge), how)
	default:
		d.add(OK, "backup", "the newest is %s old (%s); test it with gozzard backup verify", age(old), where)
	}
}

func (d *serverChecks) keys() {
	keys, err := signing.Keys(d.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(Warn, "signing key", "there is none yet: the server makes it at its first start")
	case err != nil:
		d.add(Fail, "signing key", "%v", err)
	default:
		k := keys[len(keys)-1]
		d.add(OK, "signing key", "epoch %d, made %s", k.Key.Epoch, k.At.Format(time.RFC3339))
	}
}

func (d *serverChecks) certificates() {
	// The key file has the certificate, too. The folder of an older program has no key file until the server starts.
	authority := filepath.Join(d.Data, enrol.KeyFile)
	if _, err := os.Lstat(authority); errors.Is(err, fs.ErrNotExist) {
		authority = filepath.Join(d.Data, enrol.CertificateFile)
	}
	d.certificate("authority", authority, authorityWarns,
		"after that every host must join again: plan for it")
	if d.Cert != "" {
		d.certificate("API", d.Cert, certificateWarns,
			"after that callers reject the server: replace it")
	}
}

func (d *serverChecks) certificate(what, path string, warns time.Duration, then string) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && what == "authority" {
		return // agents are on this machine only
	}
	if err != nil {
		d.add(Fail, what, "cannot read its certificate: %v", err)
		return
	}

	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			d.add(Fail, what, "cannot read the certificate in %s: %v", path, err)
			return
		}
		d.findings = append(d.findings, checkExpiry(what, cert.NotAfter, d.Now, warns, then))
		return
	}

	d.add(Fail, what, "%s has no certificate", path)
}

func checkExpiry(what string, end, now time.Time, warns time.Duration, then string) Finding {
	left := end.Sub(now)
	switch {
	case left <= 0:
		return Finding{Fail, what, fmt.Sprintf("its certificate expired at %s: %s",
			end.UTC().Format(time.RFC3339), then)}
	case left < warns:
		return Finding{Warn, what, fmt.Sprintf("its certificate expires in %s: %s", age(left), then)}
	}
	return Finding{OK, what, "its certificate is valid until " + end.UTC().Format(time.RFC3339)}
}

// age is a duration in whole days, or in hours and minutes below two days.
func age(d time.Duration) string {
	if days := int(d.Hours()) / 24; days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	if d < time.Minute {
		return "less than a minute"
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// alive reports whether there is a process with a pid.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // it only gives memory back

	if runtime.GOOS == "windows" { // FindProcess has opened it
		return true
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
