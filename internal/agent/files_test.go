package agent_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// TestFileResult: the outcome of an operation on a file says by a code how the file was found, with the digest of what is there, also
// after the agent has been started again.
func TestFileResult(t *testing.T) {
	digest := func(text string) string { return gozzard.FileDigest([]byte(text)) }
	long := "/etc/" + strings.Repeat("a folder with a long name/", 38) + "shop.conf" // no message has room for it and a digest
	for name, c := range map[string]struct {
		path, there, expect string
		code                gozzard.Code
		want                gozzard.FileResult
	}{
		"new":             {"", "", "", gozzard.CodeOK, gozzard.FileResult{Code: gozzard.FileNew}},
		"new as expected": {"", "", gozzard.FileAbsent, gozzard.CodeOK, gozzard.FileResult{Code: gozzard.FileNew}},
		"same":            {"", "new", "", gozzard.CodeOK, gozzard.FileResult{Code: gozzard.FileSame, SHA256: digest("new")}},
		"replaced":        {"", "old", digest("old"), gozzard.CodeOK, gozzard.FileResult{Code: gozzard.FileReplaced, SHA256: digest("old")}},
		"changed":         {"", "by hand", digest("old"), gozzard.CodeRefused, gozzard.FileResult{Code: gozzard.FileChanged, SHA256: digest("by hand")}},
		"a long path":     {long, "by hand", digest("old"), gozzard.CodeRefused, gozzard.FileResult{Code: gozzard.FileChanged, SHA256: digest("by hand")}},
		"gone":            {"", "", digest("old"), gozzard.CodeRefused, gozzard.FileResult{Code: gozzard.FileGone}},
		"present":         {"", "by hand", gozzard.FileAbsent, gozzard.CodeRefused, gozzard.FileResult{Code: gozzard.FilePresent, SHA256: digest("by hand")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.o.Files = r.host.Files()
				r.start()
				r.connect()
				r.set(func() { r.noAcks = true })
				write := func(content, expect string) gozzard.OpID {
					f := &gozzard.FileSpec{Path: "/etc/shop.conf", Mode: "0644", Expect: expect}
					if c.path != "" {
						f.Path = c.path
					}
					f.SetContent([]byte(content))
					s := &gozzard.Spec{File: f}
					s.Identity.User = "shop"
					op := r.op(gozzard.ActionConfigure, "")
					op.Key, op.Spec = gozzard.FileKey("shop", f.Path), gozzard.EncodeSpec(s)
					r.do(op)
					pass(time.Second)
					return op.ID
				}
				if c.there != "" {
					write(c.there, "")
				}

				id := write("new", c.expect)
				if out := r.last(id).Outcome; out.Code != c.code || out.File != c.want {
					t.Errorf("%+v, want %s and %+v", out, c.code, c.want)
				}
				r.forget()
				r.stop()
				r.start()
				r.connect()
				open := r.hello().Hello.Open
				i := slices.IndexFunc(open, func(x gozzard.OpReport) bool { return x.ID == id })
				if i < 0 || open[i].Outcome.File != c.want {
					t.Errorf("after a restart of the agent: %+v, want %+v", open, c.want)
				}
				r.stop()
			})
		})
	}
}
