package configfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/record"
)

// TestCheckPlace: a template decides the name and the folder of its file. Neither may lead to another place than it says.
func TestCheckPlace(t *testing.T) {
	t.Parallel()
	const reject = ""
	for _, c := range []struct{ path, name, want string }{
		{"/data/app", "a.conf", "/data/app/a.conf"},
		{"/data//app/../etc/", "配置 1.conf", "/data/etc/配置 1.conf"},
		{"/", "a", "/a"},
		{"C:/app", "a.conf", "C:/app/a.conf"},
		{"/data", "..", reject},
		{"/data", ".", reject},
		{"/data", "", reject},
		{"/data", "../etc/passwd", reject},
		{"/data", `..\system.ini`, reject},
		{"/data", "a\nb", reject},
		{"/data", "a\x00b", reject},
		{"/data", strings.Repeat("x", 256), reject},
		{"data", "a", reject},
		{"", "a", reject},
		{"C:", "a", reject},
		{"/data\n/etc", "a", reject},
		{"/" + strings.Repeat("x", maxPath), "a", reject},
	} {
		file := record.ConfigInstance{Path: c.path, Name: c.name}
		err := checkPlace(&file)
		if c.want == reject {
			var wrong *record.ConfigFault
			if !errors.As(err, &wrong) || wrong.Kind != record.ConfigUnrendered {
				t.Errorf("%q in %q: %v", c.name, c.path, err)
			}
			continue
		}
		if err != nil || whole(&file) != c.want {
			t.Errorf("%q in %q: %q, %v", c.name, c.path, whole(&file), err)
		}
	}
}

// TestCheckTemplate: texts of a template are bounded, and blanks are rejected where the original rejects them.
func TestCheckTemplate(t *testing.T) {
	t.Parallel()
	good := record.ConfigTemplate{Name: "a", FileName: "a.conf", Path: "/a//x/../b/", Owner: "root", Group: "root", Mode: "0644", LineSeparator: "LF"}
	if err := checkTemplate(&good); err != nil || good.Path != "/a/b" {
		t.Fatalf("%q, %v", good.Path, err)
	}

	for name, spoil := range map[string]func(*record.ConfigTemplate){
		"blank in the name":      func(x *record.ConfigTemplate) { x.Name = "a b" },
		"full-width blank":       func(x *record.ConfigTemplate) { x.FileName = "a\u3000b" },
		"line end in the owner":  func(x *record.ConfigTemplate) { x.Owner = "root\n" },
		"no group":               func(x *record.ConfigTemplate) { x.Group = "" },
		"NUL in the folder":      func(x *record.ConfigTemplate) { x.Path = "/a\x00" },
		"bytes that are no text": func(x *record.ConfigTemplate) { x.Mode = "\xff" },
		"a name that is long":    func(x *record.ConfigTemplate) { x.Name = strings.Repeat("长", maxName) },
	} {
		bad := good
		spoil(&bad)
		if err := checkTemplate(&bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
