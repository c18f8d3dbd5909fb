package supervise_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

// printing has a log that every start makes longer.
type printing struct {
	supervise.Host
	log   string
	print func() string
}

func (p *printing) ReadLog(q gozzard.LogQuery) gozzard.LogChunk {
	if q.Max == 1 { // before a start: the run prints right after it
		c := gozzard.LogChunk{Offset: int64(max(0, len(p.log)-1)), Next: int64(len(p.log))}
		p.log += p.print()
		return c
	}
	at := max(0, len(p.log)-q.Max)
	return gozzard.LogChunk{Data: []byte(p.log[at:]), Offset: int64(at), Next: int64(len(p.log))}
}

// TestCrashLoopNamesItsCause: the status and the event of a crash loop have the last line that the process printed, also
// if it ended after its start check: clean, of bounded length, and never that of an earlier run.
func TestCrashLoopNamesItsCause(t *testing.T) {
	for name, c := range map[string]struct{ prints, want string }{
		"traceback": {"Traceback:\n  line 3\nOSError: [Errno 98] Address already in use\n\n",
			": exited with 1; last output: OSError: [Errno 98] Address already in use"},
		"nothing": {"", ": exited with 1"},
		"blank":   {"\n \n", ": exited with 1"},
		"hostile": {"ok\n\x1b]0;x\x07red\x1b[31m \xff\u202etxt\r\n", ": exited with 1; last output: ]0;xred[31m txt"},
		"long":    {strings.Repeat("x", 9000) + " the end\n", " the end"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &printing{log: "a line of an earlier run\n", print: func() string { return c.prints }}
				r := newRig(t, func(h *sim.Host) supervise.Host { host.Host = h; return host })
				r.up()
				defer r.down()

				r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Policy.StartCheckSecs = 1 }), gozzard.CodeOK, true)
				for range 3 {
					r.after(15 * time.Second)
					r.end(supervise.Exit{Known: true, Code: 1})
				}
				r.after(time.Second)
				st := r.status()
				if !strings.HasPrefix(st.Message, "crash loop: 3 exits, next start in ") || !strings.HasSuffix(st.Message, c.want) ||
					len(st.Message) > 400 || strings.ContainsAny(st.Message, "\x1b\n\u202e") {
					t.Errorf("%q", st.Message)
				}
			})
		})
	}
}
