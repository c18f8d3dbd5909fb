//go:build linux

package tenants_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// ground is the folder of a shared host: a program for all, a folder of each party, and a drop for records.
type ground struct {
	t       testing.TB
	dir     string
	life    string // the program
	parties []*party
}

// newGround makes the folders of three tenants and of root.
func newGround(t testing.TB) *ground {
	t.Helper()
	dir, err := os.MkdirTemp("", "gozzard-shared-") // every account must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, dir: dir, life: filepath.Join(dir, "bin", "life")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(func() { ft.KillIn(t, dir) })
	g.folder("", 0o755, 0)
	g.folder("bin", 0o755, 0)
	g.folder("drop", 0o1733, 0)
	build := exec.Command("go", "build", "-trimpath", "-o", g.life, "./testdata/life")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests build programs: compiled once
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the program of the tenants: %v\n%s", err, out)
	}

	for i, p := range []*party{{name: "shop", account: "nobody", biz: 2}, {name: "pay", account: "daemon", biz: 3},
		{name: "vault", account: "bin", biz: 4}, {name: "root", account: "root"}} {
		p.uid, p.mark, p.dir = ft.Credential(t, p.account).Uid, "qq"+p.name+"qq", filepath.Join(dir, "home", p.name)
		p.hosts = []int{1, 2 + i} // host 1 is shared
		g.parties = append(g.parties, p)
		for _, name := range []string{"", "run", "scratch", "links"} {
			g.folder(filepath.Join("home", p.name, name), 0o755, p.uid)
		}
		g.folder(filepath.Join("home", p.name, "keep"), 0o700, p.uid)
		for _, name := range []string{"secret", "log", "pid"} {
			path := filepath.Join(p.dir, "keep", name)
			g.write(path, p.mark+" "+name+"\n")
			ft.Chown(t, path, p.account)
		}
	}
	return g
}

func (g *ground) party(name string) *party {
	for _, p := range g.parties {
		if p.name == name {
			return p
		}
	}
	panic("no party " + name)
}

func (g *ground) folder(name string, mode os.FileMode, uid uint32) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	err := os.MkdirAll(path, 0o755)
	if err == nil {
		err = os.Chmod(path, mode&0o777|os.FileMode(mode>>9&1)*os.ModeSticky)
	}
	if err == nil {
		err = os.Lchown(path, int(uid), -1)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) write(path, text string) {
	g.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// pidFile is that of a process that a party keeps. Everyone can read it.
func (g *ground) pidFile(p *party, name string) string {
	g.t.Helper()
	g.folder(filepath.Join("home", p.name, "run", name), 0o755, p.uid)
	return filepath.Join(p.dir, "run", name, "pid")
}

// as calls the program as an account, as nothing but the test does.
func (g *ground) as(p *party, args ...string) {
	g.t.Helper()
	before := len(g.records())
	cmd := exec.Command(g.life, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: uint32(65534)}}
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("%v: %v", args, err)
	}
	want := before + max(1, map[string]int{"start": 2, "stop": 2, "restart": 3}[args[0]])
	ft.Until(g.t, time.Minute, func() string { return fmt.Sprint("no records of ", args) },
		func() bool { return len(g.records()) >= want })
}

// records lists the complete records.
func (g *ground) records() []string {
	g.t.Helper()
	list, err := filepath.Glob(filepath.Join(g.dir, "drop", "[0-9]*"))
	if err != nil {
		g.t.Fatal(err)
	}
	return list
}
