//go:build linux && systemd

package packages_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a Debian with its own systemd, files, processes and address.
type machine struct {
	t    *testing.T
	name string
	root string
	boot *exec.Cmd
	init string // pid of its systemd, as this machine sees it

	net, ip string
	unified bool // it has cgroups of version 2 only
}

// network is a network namespace with a bridge that joins the machines.
func network(t *testing.T) (pid string) {
	t.Helper()
	hold := exec.Command("unshare", "--net", "sleep", "infinity")
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Process.Kill(); _ = hold.Wait() })
	pid = strconv.Itoa(hold.Process.Pid)

	script := `until [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
exec nsenter -t $1 -n sh -ec 'ip link set lo up; ip link add br0 type bridge; ip addr add 10.77.0.254/24 dev br0; ip link set br0 up'`
	if out, err := exec.Command("sh", "-c", script, "sh", pid).CombinedOutput(); err != nil {
		t.Fatalf("network: %v\n%s", err, out)
	}
	return pid
}

// debian makes the files that all machines share. GOZZARD_TEST_ROOT names a folder that has them already.
func debian(t *testing.T) string {
	t.Helper()
	if root := os.Getenv("GOZZARD_TEST_ROOT"); root != "" {
		return root
	}
	root := filepath.Join(t.TempDir(), "debian")
	cmd := exec.Command("debootstrap", "--variant=minbase",
		"--include=systemd,systemd-sysv,dbus,curl,ca-certificates,iproute2,procps,man-db,nginx-light,redis-server,supervisor,nodejs", "bookworm", root)
	if source := os.Getenv("DEBIAN_MIRROR"); source != "" {
		cmd.Args = append(cmd.Args, source)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	return root
}

// bothVersions makes the packages of two versions. GOZZARD_TEST_DIST names a folder that has them already, as old and new.
func bothVersions(t *testing.T) string {
	t.Helper()
	if dist := os.Getenv("GOZZARD_TEST_DIST"); dist != "" {
		return dist
	}
	dist := t.TempDir()
	for name, version := range map[string]string{"old": "1.0.0", "new": "1.1.0"} {
		if err := os.Rename(pack(t, version), filepath.Join(dist, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dist
}

// newMachine boots a machine. Nothing that it writes reaches base. With unified it has cgroups of version 2 only, which
// systemd delegates to units; otherwise those that this machine has.
func newMachine(t *testing.T, net, base, name, ip, dist string, unified bool) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, name: name, root: filepath.Join(dir, "root")}

	// Its files: an overlay, with the packages and the scripts of this test.
	setup := `set -e; mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"; cd "$1/root"
: >etc/machine-id; rm -f var/lib/dbus/machine-id; echo "$3" >etc/hostname
for unit in nginx redis-server supervisor console-getty apt-daily.timer apt-daily-upgrade.timer; do
	case $unit in *.timer) ;; *) unit=$unit.service ;; esac
	ln -sf /dev/null etc/systemd/system/$unit
done
cp -r "$4" dist; cp -r "$5" examples; cp "$6" lib.sh`
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", m.root).Run() })
	if out, err := exec.Command("sh", "-c", setup, "sh", dir, base, name, dist, filepath.Join(here, repository, "examples"),
		filepath.Join(here, "testdata", "lib.sh")).CombinedOutput(); err != nil {
		t.Fatalf("files of %s: %v\n%s", name, err, out)
	}

	m.net, m.ip, m.unified = net, ip, unified
	t.Cleanup(m.halt)
	m.start()
	return m
}

// start boots the machine.
func (m *machine) start() {
	m.t.Helper()
	m.boot = exec.Command("nsenter", "-t", m.net, "-n", "systemd-nspawn", "--quiet", "--directory="+m.root, "--machine="+m.name,
		"--network-bridge=br0", "--boot", "--register=no", "--keep-unit", "--console=read-only")
	if m.unified {
		m.boot.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	}
	if err := m.boot.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.awaitInit()
	m.sh(`soon sh -c 'systemctl is-system-running | grep -E "running|degraded"'
ip link set host0 up; ip addr add ` + m.ip + `/24 dev host0`)
}

// reboot shuts the machine down and boots it again.
func (m *machine) reboot() {
	m.t.Helper()
	m.halt()
	m.start()
}

// awaitInit finds the systemd of the machine.
func (m *machine) awaitInit() {
	m.t.Helper()
	pid := m.boot.Process.Pid
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		for _, child := range strings.Fields(string(b)) {
			comm, _ := os.ReadFile("/proc/" + child + "/comm")
			if strings.TrimSpace(string(comm)) != "systemd" {
				continue
			}
			if _, err := os.Stat("/proc/" + child + "/root/run/systemd/private"); err == nil {
				m.init = child
				return
			}
		}
	}
	m.t.Fatalf("%s did not boot", m.name)
}

// halt ends the machine.
func (m *machine) halt() {
	if m.boot == nil || m.boot.Process == nil {
		return
	}
	done := make(chan struct{})
	go func() { _ = m.boot.Wait(); close(done) }()
	_ = m.boot.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		_ = m.boot.Process.Kill()
		<-done
	}
}

// sh runs a script as root of the machine, with the functions of lib.sh, and returns what it prints.
func (m *machine) sh(script string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", m.init, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "sh", "-c",
		". /lib.sh\n"+script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root",
		"GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s\n-- script\n%s\n%s", m.name, err, out, script, m.logs())
	}
	return strings.TrimSpace(string(out))
}

// logs is the end of the log of our units.
func (m *machine) logs() string {
	out, _ := exec.Command("nsenter", "-t", m.init, "-m", "-u", "-i", "-n", "-p", "-r", "journalctl", "--no-pager", "-o",
		"cat", "-n", "40", "-u", "gozzard*").CombinedOutput()
	return "-- journal\n" + string(out)
}

// TestSystemd installs the packages on three machines as docs/install.md and docs/add-hosts.md say it: units are started,
// restarted and upgraded by systemd, hosts leave, and the package is purged.
func TestSystemd(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to boot machines")
	}
	net, base, dist := network(t), debian(t), bothVersions(t)
	srv := newMachine(t, net, base, "srv", "10.77.0.1", dist, false)
	web := newMachine(t, net, base, "web", "10.77.0.2", dist, true)
	db := newMachine(t, net, base, "db", "10.77.0.3", dist, true)

	f := &systemdFleet{t: t, srv: srv, web: web, db: db}
	f.oneMachine()
	f.openServer()
	f.joinByPackage()
	f.joinByScript()
	f.upgrade()
	f.leave()
	f.forget()
	f.purge()
}
