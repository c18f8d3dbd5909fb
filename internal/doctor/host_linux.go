package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/procfs"
)

// What an agent should have.
const (
	wantedFiles  = 65536
	neededFiles  = 1024
	wantedSpace  = 256 << 20
	neededSpace  = 16 << 20
	tmpfsMagic   = 0x01021994
	overlayMagic = 0x794c7630
	fuseMagic    = 0x65735546
)

// networkFS names network file systems by the numbers of statfs. Their locks and syncs depend on a network and on
// another machine.
var networkFS = map[int64]string{
	0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB", 0x01021997: "9P", 0x00c36400: "Ceph",
	0x5346414f: "AFS", 0x6b414653: "AFS",
	0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x01161970: "GFS2", 0x7461636f: "OCFS2",
}

// examine checks this host.
func examine(data string, own host.Privileges) []Finding {
	all := []Finding{checkPidfd(), checkMode(own)}
	all = append(all, checkCgroups()...)
	all = append(all, checkShell(), checkProc(), checkFiles(), checkClock(time.Now()))
	return append(all, checkState(data)...)
}

func checkPidfd() Finding {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return Finding{Warn, "pidfd",
			fmt.Sprintf("not available (%v), Linux 5.3 or newer has it: the agent polls for exits instead", err)}
	}
	_ = unix.Close(fd)
	return Finding{OK, "pidfd", "available: the agent notices exits at once"}
}

// checkMode says in which of the three modes an agent would run, and what that means.
func checkMode(own host.Privileges) Finding {
	switch own.Mode {
	case gozzard.ModeRoot:
		return Finding{OK, "mode", "root: commands run as any account that the policy allows"}
	case gozzard.ModeCap:
		return Finding{OK, "mode",
			fmt.Sprintf("cap, as %s: commands run as any account that the policy allows. Only the policy keeps the agent from "+
				"root. Open files, disk and network use of other accounts' processes cannot be measured", own.Account)}
	}
	return Finding{Warn, "mode",
		fmt.Sprintf("user, as %s: commands run as this account only, and processes of other accounts cannot be inspected or "+
			"killed. For more, run the agent with CAP_SETUID, CAP_SETGID and CAP_KILL (gozzard-agent-cap.service) or as root "+
			"(gozzard-agent.service)", own.Account)}
}

func checkCgroups() []Finding {
	const without = "the processes of a definition are found by their environment and their parents; one that hides from both is found by its pid file only"
	root, controllers, err := host.CgroupSubtree()
	if err != nil {
		return []Finding{{Warn, "cgroup", fmt.Sprintf("no usable cgroup v2 (%v): %s", err, without)}}
	}

	probe := filepath.Join(root, "gozzard-doctor-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(probe, 0o755); err != nil {
		return []Finding{{Warn, "cgroup", fmt.Sprintf("cgroup v2 at %s cannot be used (%v): %s", root, err,
			without)}}
	}

	_ = os.Remove(probe) // empty, and made just now
	all := []Finding{{OK, "cgroup", "version 2 at " + root}}

	if !controllers {
		return append(all, Finding{Warn, "controllers",
			root + " has the agent itself as a member, so the kernel cannot enforce limits below it. " +
				"Set DelegateSubgroup=agent in the unit (systemd 254)"})
	}

	b, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	have := strings.Fields(string(b))
	var missing []string
	for _, c := range []string{"cpu", "memory"} {
		if !slices.Contains(have, c) {
			missing = append(missing, c)
		}
	}

	if err != nil || len(missing) > 0 {
		text := strings.Join(missing, "")
		if len(missing) == 2 {
			text = fmt.Sprintf("%s and no %s", missing[0], missing[1])
		}
		return append(all, Finding{Warn, "controllers", "cgroup v2 has no " + text +
			" here: the agent measures limits and acts on them, the kernel cannot enforce them"})
	}

	return append(all, Finding{OK, "controllers", "cpu and memory: the kernel can enforce limits"})
}

func checkShell() Finding {
	if err := unix.Access("/bin/sh", unix.X_OK); err != nil {
		return Finding{Fail, "shell", fmt.Sprintf("cannot run /bin/sh (%v), which every command of a process needs", err)}
	}
	return Finding{OK, "shell", "/bin/sh"}
}

func checkProc() Finding {
	if _, err := procfs.New("/proc").Stat(1); err != nil {
		return Finding{Warn, "proc",
			fmt.Sprintf("other processes are hidden in /proc (%v), perhaps by the mount option hidepid: the agent can find and "+
				"measure fewer processes", err)}
	}
	return Finding{OK, "proc", "all processes are visible"}
}

func checkFiles() Finding {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return Finding{Warn, "open files", fmt.Sprintf("cannot read the limit: %v", err)}
	}

	text := fmt.Sprintf("the limit is %d (hard limit %d)", l.Cur, l.Max)
	switch {
	case l.Max < neededFiles:
		return Finding{Fail, "open files",
			fmt.Sprintf("%s, at least %d is needed: each process needs one", text, neededFiles)}
	case l.Cur < wantedFiles:
		return Finding{Warn, "open files", fmt.Sprintf("%s, %d is recommended: each process needs one", text,
			wantedFiles)}
	}

	return Finding{OK, "open files", text}
}

// checkClock: events and reports carry this host's time.
func checkClock(now time.Time) Finding {
	if now.Year() < 2025 {
		return Finding{Fail, "clock", "says " + now.UTC().Format(time.RFC3339) + ", which is in the past: set it"}
	}
	var t unix.Timex
	if state, err := unix.Adjtimex(&t); err != nil || state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 {
		return Finding{Warn, "clock",
			"not synchronised according to the kernel: the times of this host's events may be wrong"}
	}
	return Finding{OK, "clock", "synchronised"}
}

// checkState checks the state folder, or the folder in which it will be made.
func checkState(dir string) []Finding {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []Finding{{Fail, "state", err.Error()}}
	}

	st, err := os.Lstat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		above := abs
		for errors.Is(err, fs.ErrNotExist) && above != "/" {
			above = filepath.Dir(above)
			_, err = os.Stat(above)
		}
		if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
			return []Finding{{Fail, "state", fmt.Sprintf("%s does not exist and cannot be made in %s: %v", abs,
				above, err)}}
		}
		return append([]Finding{{OK, "state", abs + " will be made"}}, checkDisk(above)...)
	}

	if err != nil {
		return []Finding{{Fail, "state", err.Error()}}
	}

	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return []Finding{{Fail, "state", abs + " is not a folder"}}
	case st.Mode().Perm()&0o077 != 0:
		return []Finding{{Fail, "state", fmt.Sprintf("other accounts can enter %s (mode %04o); run: chmod 700 %s",
			abs, st.Mode().Perm(), abs)}}
	case ok && int(sys.Uid) != os.Geteuid():
		return []Finding{{Fail, "state", belongsToOther(abs, sys.Uid)}}
	}

	all := []Finding{{OK, "state", abs}}
	if err := journal.CheckFolder(abs); err != nil {
		all = []Finding{{Fail, "state", err.Error() + ": an agent cannot start here, and one that runs cannot record"}}
	}
	switch v, err := journal.Version(abs); {
	case err != nil:
		all = append(all, Finding{Fail, "journal", err.Error()})
	case v > journal.FormatVersion:
		all = append(all, Finding{Fail, "journal",
			fmt.Sprintf("has format version %d, this program reads up to %d: a newer agent wrote it; use that one", v,
				journal.FormatVersion)})
	case v > 0:
		all = append(all, Finding{OK, "journal", fmt.Sprintf("format version %d", v)})
	}

	return append(all, checkDisk(abs)...)
}

// belongsToOther says how to check a state folder of another account.
func belongsToOther(dir string, uid uint32) string {
	account, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return fmt.Sprintf("%s belongs to uid %d, this account is uid %d: run this as the account of the agent", dir, uid, os.Geteuid())
	}
	return fmt.Sprintf("%s belongs to %s, the account of the agent: run this as that account: runuser -u %s -- gozzard agent doctor "+
		"(in mode cap with its capabilities, as gozzard agent doctor --help shows)", dir, account.Username, account.Username)
}

func checkDisk(dir string) []Finding {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return []Finding{{Fail, "disk", fmt.Sprintf("cannot inspect the file system of %s: %v", dir, err)}}
	}

	all := checkFileSystem(int64(s.Type), dir, "the journal")
	free := uint64(s.Bavail) * uint64(s.Bsize)
	switch {
	case free < neededSpace:
		all = append(all, Finding{Fail, "space",
			fmt.Sprintf("%d MiB are free, at least %d are needed", free>>20, neededSpace>>20)})
	case free < wantedSpace:
		all = append(all, Finding{Warn, "space",
			fmt.Sprintf("%d MiB are free, %d are recommended", free>>20, wantedSpace>>20)})
	default:
		all = append(all, Finding{OK, "space", fmt.Sprintf("%d MiB are free", free>>20)})
	}

	return all
}

// checkFileSystem says what a kind of file system means for data that must survive. It finds nothing on a local disk.
func checkFileSystem(kind int64, dir, what string) []Finding {
	name, network := networkFS[kind]
	switch {
	case network:
		return []Finding{{Fail, "disk",
			fmt.Sprintf("%s is on a network file system (%s): %s needs a local disk, move it to one", dir, name, what)}}
	case kind == tmpfsMagic:
		return []Finding{{Warn, "disk", dir + " is in memory: everything is lost at a reboot"}}
	case kind == overlayMagic:
		return []Finding{{Warn, "disk",
			dir + " is in a container's own layer: everything is lost with the container"}}
	case kind == fuseMagic:
		return []Finding{{Warn, "disk",
			fmt.Sprintf("%s is on a file system in user space (FUSE), which may lose synced data: %s relies on sync",
				dir, what)}}
	}

	return nil
}

// checkServerDisk checks the file system of a record.
func checkServerDisk(dir string) []Finding {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return []Finding{{Fail, "disk", fmt.Sprintf("cannot inspect the file system of %s: %v", dir, err)}}
	}
	if bad := checkFileSystem(int64(s.Type), dir, "the record"); bad != nil {
		return bad
	}
	return []Finding{{OK, "disk", dir + " is on a local disk"}}
}
