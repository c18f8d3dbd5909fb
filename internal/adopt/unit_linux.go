package adopt

import (
	"bytes"
	"context"
	_ "embed" // the drop-in
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// DropIn is the name of the file by which a unit is given up. It is read after all others of the unit.
	DropIn = "zzzz-gozzard-adopt.conf"

	runtimeUnits = "/run/systemd/system"
	localUnits   = "/etc/systemd/system"
	bootFolders  = "/etc/tmpfiles.d"

	maxShown       = 1 << 20 // bytes that systemctl may print
	systemPatience = time.Minute
)

// givenUp makes systemd leave the processes of a unit alone, without an end of the unit: it is over when its main process
// ends. The file is gone at the next boot.
//
//go:embed givenup.conf
var givenUp []byte

// shown are the properties of a unit that are read.
var shown = []string{"Id", "LoadState", "ActiveState", "SubState", "MainPID", "ControlGroup", "FragmentPath", "DropInPaths", "NeedDaemonReload",
	"Type", "DynamicUser", "WatchdogUSec", "TriggeredBy", "WantedBy", "RequiredBy", "UpheldBy", "OnFailureOf", "OnSuccessOf", "Delegate",
	"UnitFileState", "InvocationID", "Restart", "KillMode", "ExecStop", "ExecStopPost", "RefuseManualStart", "NFileDescriptorStore",
	"RuntimeDirectory", "RuntimeDirectoryMode", "User", "Group"}

var (
	isUnitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]{1,240}\.service$`)

	// isPlain finds what systemd-tmpfiles takes as it is: it gives other characters, such as %, a meaning.
	isPlain = regexp.MustCompile(`^[A-Za-z0-9:_./@+-]*$`)
)

// Service is a running service of systemd.
type Service struct {
	Name  string
	PID   int // its main process; 0: none
	show  map[string]string
	files string // its files, as they are now
}

// FindService asks systemd for a service.
func FindService(ctx context.Context, name string) (*Service, error) {
	if !isUnitName.MatchString(name) || strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("%q is not the name of a service", name)
	}
	out, err := systemctl(ctx, "show", "--property="+strings.Join(shown, ","), "--", name)
	if err != nil {
		return nil, err
	}
	s := &Service{Name: name, show: map[string]string{}}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		s.show[key] = value
	}
	s.PID, _ = strconv.Atoi(s.show["MainPID"]) // no number: no process
	for _, file := range s.read() {
		if info, err := os.Stat(file); err == nil {
			s.files += fmt.Sprintf("%q %d %v\n", file, info.Size(), info.ModTime())
		}
	}
	return s, nil
}

// read lists the files of the unit that systemd has read.
func (s *Service) read() []string {
	return append([]string{s.show["FragmentPath"]}, strings.Fields(s.show["DropInPaths"])...)
}

// systemctl returns what systemctl prints.
func systemctl(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, systemPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemctl", words...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0")
	out, errs := limited{max: maxShown}, limited{max: 500}
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err != nil {
		return "", fmt.Errorf("systemctl %s failed: %w: %s", words[0], err, strings.TrimSpace(errs.String()))
	}
	if out.cut {
		return "", fmt.Errorf("systemctl %s prints more than %d bytes", words[0], maxShown)
	}
	return out.String(), nil
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	max int
	cut bool
}

func (l *limited) Write(b []byte) (int, error) {
	part := b[:min(len(b), l.max-l.Len())]
	l.cut = l.cut || len(part) < len(b)
	_, _ = l.Buffer.Write(part) // never fails
	return len(b), nil
}

// Runs reports whether systemd supervises a process of the service.
func (s *Service) Runs() bool { return s.PID > 0 }

// Enabled reports whether systemd would start the service at the next boot.
func (s *Service) Enabled() bool {
	return s.show["UnitFileState"] == "enabled" || s.show["WantedBy"] != ""
}

// Same reports whether the service is as it was: the same run, the same properties, and the same files.
func (s *Service) Same(now *Service) bool {
	return s.files == now.files && maps.Equal(s.show, now.show)
}

// Refusal says why the service cannot be given up by systemd, nil if it can. It is about the service that systemd runs.
// Of a unit whose text is imported, file and dropIns are the files that were read; else there are none.
func (s *Service) Refusal(file string, dropIns []string) error {
	v := s.show
	set := func(key string) bool { return v[key] != "" && v[key] != "no" && v[key] != "0" }
	read, _ := filepath.EvalSymlinks(file)
	known, _ := filepath.EvalSymlinks(v["FragmentPath"])
	switch {
	case v["LoadState"] != "loaded":
		return fmt.Errorf("systemd has no unit %s (%s)", s.Name, v["LoadState"])
	case v["Id"] != s.Name:
		return fmt.Errorf("%s is another name of %s: give that name", s.Name, v["Id"])
	case file != "" && read != known:
		return fmt.Errorf("systemd runs %s from %s, not from %s: give the name of the unit", s.Name, v["FragmentPath"], file)
	case set("NeedDaemonReload") || s.unread(dropIns):
		return fmt.Errorf("the files of %s changed since systemd read them: run systemctl daemon-reload, then look at the plan again", s.Name)
	case v["Type"] == "oneshot" || v["Type"] == "dbus":
		return fmt.Errorf("%s has Type=%s, and only services that systemd starts and keeps can be adopted", s.Name, v["Type"])
	case v["SubState"] != "running":
		return fmt.Errorf("%s is not in its normal state (%s): wait until it runs", s.Name, v["SubState"])
	case set("DynamicUser"):
		return fmt.Errorf("the account of %s exists only while systemd runs it (DynamicUser)", s.Name)
	case set("WatchdogUSec") && v["WatchdogUSec"] != "infinity":
		return fmt.Errorf("%s reports to the watchdog of systemd (WatchdogSec), which would end unseen: set WatchdogSec=0 by a drop-in "+
			"and restart it, or leave it with systemd", s.Name)
	case set("TriggeredBy"):
		return fmt.Errorf("%s would be started again by %s", s.Name, v["TriggeredBy"])
	case set("NFileDescriptorStore"):
		return fmt.Errorf("systemd holds descriptors for %s (FileDescriptorStoreMax)", s.Name)
	case set("Delegate"):
		return fmt.Errorf("%s manages cgroups itself (Delegate)", s.Name)
	}
	for _, word := range append(s.Folders(), v["User"], v["Group"]) {
		if !isPlain.MatchString(word) {
			return fmt.Errorf("%s has an account or a folder below /run with a name that systemd-tmpfiles reads in another way: %q", s.Name, word)
		}
	}
	return s.startedBy()
}

// unread reports whether systemd has not read one of the drop-ins. NeedDaemonReload does not notice a new folder of drop-ins.
func (s *Service) unread(dropIns []string) bool {
	place := func(file string) string { // one folder may have two names, such as /lib and /usr/lib
		folder, _ := filepath.EvalSymlinks(filepath.Dir(file))
		return filepath.Join(folder, filepath.Base(file))
	}
	known := map[string]bool{}
	for _, file := range strings.Fields(s.show["DropInPaths"]) {
		known[place(file)] = true
	}
	return slices.ContainsFunc(dropIns, func(file string) bool { return filepath.Base(file) != DropIn && !known[place(file)] })
}

// startedBy says what would start the service after the next boot, although it is disabled.
func (s *Service) startedBy() error {
	switch state := s.show["UnitFileState"]; state {
	case "enabled", "enabled-runtime", "disabled", "static":
	default:
		return fmt.Errorf("the unit file of %s is %s: the next boot may start it, and systemctl disable does not change that", s.Name, state)
	}
	for key, folder := range map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds",
		"OnFailureOf": "", "OnSuccessOf": ""} {
		for other := range strings.FieldsSeq(s.show[key]) {
			link := filepath.Join(localUnits, other+folder, s.Name)
			if _, err := os.Lstat(link); folder == "" || err != nil || strings.Contains(other, "/") {
				return fmt.Errorf("%s would be started again by %s (%s): change that unit first", s.Name, other, key)
			}
		}
	}
	for _, file := range s.read() {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read the unit: %w", err)
		}
		if m := isAlso.FindSubmatch(text); m != nil {
			return fmt.Errorf("systemctl disable %s also disables %s (Also=): remove that line first", s.Name, m[1])
		}
	}
	return nil
}

var isAlso = regexp.MustCompile(`(?m)^[ \t]*Also[ \t]*=[ \t]*([^\s#;][^\n]*)`)

func (s *Service) dropIn() string { return filepath.Join(runtimeUnits, s.Name+".d", DropIn) }

// bootFile makes the folders of the service below /run at every boot.
func (s *Service) bootFile() string { return filepath.Join(bootFolders, "gozzard-"+s.Name+".conf") }

// Folders are the folders below /run that systemd makes for the service.
func (s *Service) Folders() (all []string) {
	for name := range strings.FieldsSeq(s.show["RuntimeDirectory"]) {
		all = append(all, filepath.Join("/run", filepath.Join("/", name)))
	}
	return all
}

// Detach makes systemd give the service up: it neither starts, stops nor kills it until the next boot, and does not start it
// then. The processes do not notice it. It can be repeated.
func (s *Service) Detach(ctx context.Context) error {
	// Not at the next boot.
	if _, err := systemctl(ctx, "disable", "--quiet", "--", s.Name); err != nil {
		return err
	}
	if err := s.keepFolders(); err != nil {
		return err
	}

	// Not in this one.
	if err := os.MkdirAll(filepath.Dir(s.dropIn()), 0o755); err != nil {
		return fmt.Errorf("cannot write the drop-in: %w", err)
	}
	if err := os.WriteFile(s.dropIn(), givenUp, 0o644); err != nil {
		return fmt.Errorf("cannot write the drop-in: %w", err)
	}
	if _, err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}

	// Believe only what systemd says.
	now, err := FindService(ctx, s.Name)
	if err != nil {
		return err
	}
	for key, want := range map[string]string{"Restart": "no", "KillMode": "none", "ExecStop": "", "ExecStopPost": "", "RefuseManualStart": "yes",
		"NeedDaemonReload": "no", "WantedBy": "", "RequiredBy": "", "UpheldBy": "", "TriggeredBy": ""} {
		if now.show[key] != want {
			return errors.Join(fmt.Errorf("systemd does not give %s up: %s is %q", s.Name, key, now.show[key]), s.attach(ctx))
		}
	}
	return nil
}

// attach undoes Detach.
func (s *Service) attach(ctx context.Context) error {
	err := errors.Join(os.Remove(s.dropIn()), os.RemoveAll(s.bootFile()))
	if _, reload := systemctl(ctx, "daemon-reload"); reload != nil {
		err = errors.Join(err, reload)
	}
	if strings.HasPrefix(s.show["UnitFileState"], "enabled") {
		_, enable := systemctl(ctx, "enable", "--quiet", "--", s.Name)
		err = errors.Join(err, enable)
	}
	return err
}

// keepFolders makes the folders of the service at every boot, as systemd did.
func (s *Service) keepFolders() error {
	if len(s.Folders()) == 0 {
		return nil
	}
	account, group := s.show["User"], s.show["Group"]
	if account == "" {
		account = "root"
	}
	if group == "" {
		group = "-"
	}
	text := "# Written by gozzard import --adopt.\n"
	for _, folder := range s.Folders() {
		text += fmt.Sprintf("d %s %s %s %s -\n", folder, s.show["RuntimeDirectoryMode"], account, group)
	}
	if err := os.MkdirAll(bootFolders, 0o755); err != nil {
		return fmt.Errorf("cannot keep the folders of %s: %w", s.Name, err)
	}
	if err := os.WriteFile(s.bootFile(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot keep the folders of %s: %w", s.Name, err)
	}
	return nil
}

// Back lists the commands that give the service back to systemd, after Gozzard has stopped it.
func (s *Service) Back() []string {
	files := quoteUnit(s.dropIn())
	if len(s.Folders()) > 0 {
		files += " " + quoteUnit(s.bootFile())
	}
	return []string{"rm -f " + files, "systemctl daemon-reload", "systemctl enable --now " + quoteUnit(s.Name)}
}

// GivenUp lists the services of this host that systemd has still given up, as far as their files show it, and the commands
// that give them back. After a boot only those with folders below /run have a file.
func GivenUp() (services, back []string) { return givenUpIn(runtimeUnits, bootFolders) }

func givenUpIn(units, boot string) (services, back []string) {
	var files []string
	add := func(pattern string, name func(file string) string) {
		found, _ := filepath.Glob(pattern) // the pattern is a constant
		for _, file := range found {
			if s := name(file); isUnitName.MatchString(s) && !strings.HasPrefix(s, "-") {
				files, services = append(files, quoteUnit(file)), append(services, quoteUnit(s))
			}
		}
	}
	add(filepath.Join(units, "*.service.d", DropIn), func(file string) string {
		return strings.TrimSuffix(filepath.Base(filepath.Dir(file)), ".d")
	})
	add(filepath.Join(boot, "gozzard-*.service.conf"), func(file string) string {
		return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "gozzard-"), ".conf")
	})
	slices.Sort(services)
	if services = slices.Compact(services); len(services) == 0 {
		return nil, nil
	}
	return services, []string{"rm -f " + strings.Join(files, " "), "systemctl daemon-reload",
		"systemctl enable --now " + strings.Join(services, " ")}
}

// quoteUnit writes a name of a unit for a shell: of its characters only the backslash has a meaning there.
func quoteUnit(s string) string {
	if strings.Contains(s, `\`) {
		return "'" + s + "'"
	}
	return s
}

// Group is the cgroup of the service, as systemd names it.
func (s *Service) Group() string { return s.show["ControlGroup"] }
