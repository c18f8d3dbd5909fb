package adopt

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOddUnitNames: what is no name of a service never becomes a word of a command or a part of a path.
func TestOddUnitNames(t *testing.T) {
	for _, name := range []string{"", "web", ".service", "--root=/tmp.service", "-x.service", "a/b.service", "../a.service", "a b.service",
		"a\nb.service", "a;reboot.service", "a$(id).service", "a'b.service", "a%b.service", "网.service", "web.timer",
		strings.Repeat("a", 241) + ".service"} {
		if _, err := FindService(context.Background(), name); err == nil || !strings.Contains(err.Error(), "is not the name of a service") {
			t.Errorf("%q: %v", name, err)
		}
	}

	// Those that systemd allows stay below its folders, and a shell reads them as they are.
	for name, word := range map[string]string{"a@..b.service": "a@..b.service", `a@x\x2f..\x2fb.service`: `'a@x\x2f..\x2fb.service'`,
		"a:b_c.d@e-f.service": "a:b_c.d@e-f.service"} {
		s := &Service{Name: name}
		switch {
		case !isUnitName.MatchString(name):
			t.Errorf("%q is no name", name)
		case filepath.Dir(filepath.Dir(s.dropIn())) != runtimeUnits || filepath.Dir(s.bootFile()) != bootFolders:
			t.Errorf("%q: %s and %s", name, s.dropIn(), s.bootFile())
		case s.Back()[2] != "systemctl enable --now "+word:
			t.Errorf("%q: %q", name, s.Back())
		}
	}
}

// movable is a service that can be given up.
func movable(t *testing.T, unit string) (*Service, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Service{Name: "web.service", PID: 2, show: map[string]string{"Id": "web.service", "LoadState": "loaded", "SubState": "running",
		"Type": "simple", "FragmentPath": file, "UnitFileState": "disabled"}}
	if err := s.Refusal(file, nil); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// TestFoldersForTmpfiles: no folder or account of a unit is written into a file of systemd-tmpfiles, where it would mean
// something else.
func TestFoldersForTmpfiles(t *testing.T) {
	for key, values := range map[string][]string{"RuntimeDirectory": {"a%b", `a"b`, "a\\x20b", "a'b", "a#b"}, "User": {"%u", "a b", "~"},
		"Group": {"%g", "a\"b"}} {
		for _, value := range values {
			s, file := movable(t, "[Service]\n")
			s.show[key] = value
			if err := s.Refusal(file, nil); err == nil || !strings.Contains(err.Error(), "systemd-tmpfiles") {
				t.Errorf("%s=%s: %v", key, value, err)
			}
		}
	}
	s, _ := movable(t, "[Service]\n")
	s.show["RuntimeDirectory"] = "redis ../../etc shop/web"
	if got := strings.Join(s.Folders(), " "); got != "/run/redis /run/etc /run/shop/web" {
		t.Errorf("folders %s", got)
	}
}

// TestAlsoInDropIn: a drop-in that makes systemctl disable another unit is found like a line of the unit.
func TestAlsoInDropIn(t *testing.T) {
	s, file := movable(t, "[Service]\n# Also=other.service\n")
	extra := filepath.Join(t.TempDir(), "also.conf")
	if err := os.WriteFile(extra, []byte("[Install]\n Also = other.service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.show["DropInPaths"] = extra
	if err := s.Refusal(file, nil); err == nil || !strings.Contains(err.Error(), "also disables other.service") {
		t.Errorf("%v", err)
	}
}

// TestNewDropIn: a drop-in that systemd has not read is a change, also if its folder is new. Two names of a folder are one.
func TestNewDropIn(t *testing.T) {
	s, file := movable(t, "[Service]\n")
	folder := filepath.Join(t.TempDir(), "web.service.d")
	other := filepath.Join(t.TempDir(), "other.d")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(folder, other)); err != nil {
		t.Fatal(err)
	}
	limits := filepath.Join(folder, "limits.conf")
	if err := os.WriteFile(limits, []byte("[Service]\nLimitNOFILE=4096\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	read := []string{limits, filepath.Join(runtimeUnits, "web.service.d", DropIn)}
	if err := s.Refusal(file, read); err == nil || !strings.Contains(err.Error(), "run systemctl daemon-reload") {
		t.Errorf("a new drop-in: %v", err)
	}
	if err := s.Refusal(file, read[1:]); err != nil {
		t.Errorf("the own drop-in: %v", err)
	}
	s.show["DropInPaths"] = filepath.Join(other, "limits.conf")
	if err := s.Refusal(file, read); err != nil {
		t.Errorf("a drop-in that systemd has read: %v", err)
	}
}

// TestGivenUp: the services that are given up are found by their files, and the commands have no other names.
func TestGivenUp(t *testing.T) {
	units, boot := t.TempDir(), t.TempDir()
	for _, file := range []string{"web.service.d/" + DropIn, `x\x2da.service.d/` + DropIn, "b c.service.d/" + DropIn, "own.service.d/own.conf"} {
		file = filepath.Join(units, file)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"gozzard-web.service.conf", "gozzard-db.service.conf", "gozzard-$(id).service.conf", "other.conf"} {
		if err := os.WriteFile(filepath.Join(boot, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	services, back := givenUpIn(units, boot)
	if got := strings.Join(services, " "); got != `'x\x2da.service' db.service web.service` {
		t.Errorf("services %s", got)
	}
	want := "rm -f " + units + "/web.service.d/" + DropIn + " '" + units + `/x\x2da.service.d/` + DropIn + "' " + boot + "/gozzard-db.service.conf " +
		boot + "/gozzard-web.service.conf; systemctl daemon-reload; systemctl enable --now 'x\\x2da.service' db.service web.service"
	if got := strings.Join(back, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if services, back := givenUpIn(t.TempDir(), boot+"/no"); services != nil || back != nil {
		t.Errorf("nothing is given up, and there are %q: %q", services, back)
	}
}

// TestSame: every property and every file counts.
func TestSame(t *testing.T) {
	s, _ := movable(t, "[Service]\n")
	s.files = "web.service 10\n"
	for _, key := range shown {
		now := &Service{Name: s.Name, PID: s.PID, show: maps.Clone(s.show), files: s.files}
		if !s.Same(now) {
			t.Fatal("another service")
		}
		now.show[key] += "x"
		if s.Same(now) {
			t.Errorf("%s changed, and the service is the same", key)
		}
	}
	if s.Same(&Service{Name: s.Name, PID: s.PID, show: s.show, files: "web.service 11\n"}) {
		t.Error("a file changed, and the service is the same")
	}
}
