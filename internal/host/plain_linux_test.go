package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// A command is started without a shell only if the shell would do nothing but execute the program.
func TestPlainExec(t *testing.T) {
	for text, want := range map[string][]string{
		"exec /usr/sbin/nginx -g daemon=off": {"/usr/sbin/nginx", "-g", "daemon=off"},
		"exec ./game  --port=1,2 a@b:c%+":    {"./game", "--port=1,2", "a@b:c%+"},
		"exec bin/x":                         {"bin/x"},
		"exec x":                             nil, // looked up by the shell
		"exec":                               nil,
		"exec ":                              nil,
		"/bin/x":                             nil,
		"exec A=b/c /bin/x":                  nil,
		"exec -a n /bin/x":                   nil,
		"exec /bin/x $HOME":                  nil,
		"exec /bin/x; true":                  nil,
		"exec /bin/x >log":                   nil,
		"exec /bin/x *":                      nil,
		"exec /bin/x 'a'":                    nil,
		"exec /bin/x \\a":                    nil,
		"exec /bin/x ~":                      nil,
		"exec /bin/x #":                      nil,
		"exec /bin/x\nexec /bin/y":           nil,
		"exec /bin/x\ty":                     nil,
		"exec /bin/服":                        nil,
		"exec /bin/x &":                      nil,
		"exec /bin/x {a}":                    nil,
	} {
		got, ok := host.PlainExec(text)
		if !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

// A program that was started without a shell is found, watched and reported like a program that a shell executed.
func TestPlainExecIsTheProcess(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("sleep")
	for _, text := range []string{"exec /bin/sleep 1000003", "exec /bin/sleep '1000003'"} {
		pid := f.front(k, s, text).Proc.PID
		args, env := content(t, fmt.Sprintf("/proc/%d/cmdline", pid)), content(t, fmt.Sprintf("/proc/%d/environ", pid))
		if args != "/bin/sleep\x001000003\x00" {
			t.Errorf("%s: runs %q", text, args)
		}
		for _, name := range []string{"PWD=", "HOME=", "GOZZARD_NAME="} {
			if !strings.Contains("\x00"+env, "\x00"+name) {
				t.Errorf("%s: no %s in %q", text, name, env)
			}
		}
		if err := clean(f.Host, k); err != nil {
			t.Fatal(err)
		}
	}

	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: "exec /no/such/program",
		Timeout: time.Minute, Keeps: true, Front: time.Minute})
	if err != nil || res.ExitCode != 127 || res.Output == "" { // in the words of the shell
		t.Errorf("a missing program: %+v, %v", res, err)
	}
}
