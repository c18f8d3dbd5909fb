package gozzard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// FuzzTaskID: only a text with one spelling is the name of a task, and it is found again by its number.
func FuzzTaskID(f *testing.F) {
	z := fuzztest.New(f)
	z.Add(string(gozzard.NewTaskID(1000, time.Unix(1521108351, 0))))
	z.Add(string(gozzard.NewTaskID(1<<62, time.Unix(1700000000, 0))))
	z.Add("20180315180551:+7")
	z.Add("20180315180551:007")
	z.Add("GSETASK:20180315180551:7")
	z.Add(":1")

	z.Fuzz(func(t *testing.T, text string) {
		seq, ok := gozzard.TaskID(text).Seq()
		if !ok {
			return
		}
		if seq <= 0 || len(text) > 64 || text != fmt.Sprintf("%s:%d", text[:14], seq) {
			t.Fatalf("%q is number %d", text, seq)
		}
	})
}

// FuzzNames: addresses, operation ids and names that are accepted have one spelling.
func FuzzNames(f *testing.F) {
	z := fuzztest.New(f)
	for _, s := range []string{"0:10.0.0.1", "3:2001:db8::1", "0:::ffff:10.0.0.1", "000102030405060708090a0b0c0d0e0f",
		"网关服", "a b", "-rf", "a\u202eb", "01:10.0.0.1", "0:fe80::1%eth0"} {
		z.Add(s)
	}

	z.Fuzz(func(t *testing.T, text string) {
		if a, err := gozzard.ParseHostAddr(text); err == nil {
			again, err := gozzard.ParseHostAddr(a.String())
			if err != nil || again != a || a.Cloud < 0 || a.IP.Zone() != "" || a.IP.Is4In6() {
				t.Fatalf("%q is %v, then %v, %v", text, a, again, err)
			}
		}

		if err := gozzard.ValidateProcessName(text); err == nil && (!gozzard.IsPlainLine(text) || strings.TrimSpace(text) != text ||
			strings.ContainsAny(text, "\\\"`;|<>?!{}^")) {
			t.Fatalf("%q is accepted as the name of a process", text)
		}

		if id, err := gozzard.ParseOpID(text); err == nil && !strings.EqualFold(id.String(), text) {
			t.Fatalf("%q is %s", text, id)
		}
		if err := gozzard.ValidateName(text); err == nil &&
			(text == "" || len(text) > 128 || strings.ContainsAny(text, "/\\:\x00\n\r\t\u202e\u2028")) {
			t.Fatalf("%q is a name", text)
		}
	})
}
