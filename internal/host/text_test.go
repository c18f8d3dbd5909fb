package host_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/test/fuzztest"
)

func TestOutputIsCleaned(t *testing.T) {
	many := strings.Repeat("line\n", 40) + "last"
	for _, c := range []struct {
		name, in, want string
		cut            bool
	}{
		{"plain", "a\nb\n", "a\nb", false},
		{"empty", "", "", false},
		{"tabs stay", "a\tb", "a\tb", false},
		{"controls go", "a\x00\x1b\x07\rb\u009b\u202e\u2028c", "abc", false},
		{"broken text", "ok \xff\xfe 好", "ok \uFFFD 好", false},
		{"cut inside a character", "\xbd好", "好", true},
		{"last lines", many, strings.Repeat("line\n", 19) + "last", false},
	} {
		if got := host.CleanOutput([]byte(c.in), c.cut); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzCleanOutput(f *testing.F) {
	z := fuzztest.New(f)
	z.Add([]byte("a\nb"), false)
	z.Add([]byte("\xff\x80\x1b[31m"), true)

	z.Fuzz(func(t *testing.T, b []byte, cut bool) {
		s := host.CleanOutput(b, cut)
		if !utf8.ValidString(s) || len(s) > 4<<10 || strings.Count(s, "\n") > 19 ||
			strings.ContainsAny(s, "\x00\x1b\r") {
			t.Fatalf("%q", s)
		}
		if c := host.CleanCmdline([]string{string(b)}); !utf8.ValidString(c) || len(c) > 1<<10 ||
			strings.Contains(c, "\n") {
			t.Fatalf("%q", c)
		}
	})
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, want, comm, exe string
		args                  []string
		match                 bool
	}{
		{"comm", "nginx", "nginx", "", nil, true},
		{"executable", "nginx", "worker", "/usr/sbin/nginx", nil, true},
		{"first argument", "redis-server", "x", "/opt/r", []string{"/opt/redis-server", "*:6379"}, true},
		{"script of an interpreter", "app.py", "python3", "/usr/bin/python3.11",
			[]string{"python3", "-u", "/opt/app.py"}, true},
		{"script after three arguments", "app.py", "python3", "/usr/bin/python3",
			[]string{"python3", "-a", "-b", "-c", "app.py"}, false},
		{"file of an editor", "nginx", "vim", "/usr/bin/vim", []string{"vim", "/usr/sbin/nginx"}, false},
		{"pretended interpreter", "nginx", "vim", "/usr/bin/vim", []string{"sh", "/usr/sbin/nginx"}, false},
		{"cut by the kernel", "a-very-long-service", "a-very-long-ser", "", nil, true},
		{"cut, but another", "a-very-long-service", "a-very-long-ser", "/x/a-very-long-serpent", nil, false},
		{"cut inside a character", "支付网关服务", "支付网关服", "", nil, true},
		{"other", "nginx", "sshd", "/usr/sbin/sshd", []string{"sshd: x"}, false},
		{"beginning is not enough", "nginx-plus", "nginx", "/usr/sbin/nginx", nil, false},
	} {
		if got := host.MatchName(c.want, c.comm, c.exe, c.args); got != c.match {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A program that replaces its arguments with a title is shown by its own name.
func TestShownName(t *testing.T) {
	for want, args := range map[string][]string{
		"nginx":        {"nginx: master process /usr/sbin/nginx -c /srv/nginx.conf"},
		"redis-server": {"redis-server 127.0.0.1:6379"},
		"postgres":     {"/usr/lib/postgresql/15/bin/postgres", "-D", "/srv/data"},
		"other":        nil,
	} {
		if got := host.ShownName(want, args); got != want {
			t.Errorf("%q is shown as %q", args, got)
		}
	}
}
