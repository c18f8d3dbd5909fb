//go:build linux

package fleettest

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Tests of attacks can be run against an earlier version of the program, to see that the attack works there:
//
//	GOZZARD_BINARY=/tmp/gozzard-before go test ./test/faults -run TestTS12
//
// An earlier version does not know every flag and field that today's version needs for the same situation. The functions
// of this file leave these out. They leave nothing out when the tests build the program themselves.

// earlier is the program that the tests were started with, "" if they build it.
var earlier = os.Getenv("GOZZARD_BINARY")

// helps has the help of commands of the earlier version.
var helps sync.Map

// Known leaves out the flags that a command of an earlier version does not know. A flag and its value are one word.
func Known(t testing.TB, command string, flags ...string) []string {
	t.Helper()
	var known []string
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if knows(t, command, name) {
			known = append(known, f)
		}
	}
	return known
}

// newFields are fields of requests, and the command and flag that came with them.
var newFields = map[string][2]string{
	"accounts":      {"app create", "--account"},
	"hosts":         {"app create", "--any-host"},
	"unknown_users": {"app create", "--unknown-users"},
	"app":           {"user token create", "--for-app"},
	"password":      {"user token create", "--for-app"},
}

// KnownFields leaves out the fields of an app, a grant or a token of a person that an earlier version does not know.
func KnownFields(t testing.TB, body J) J {
	t.Helper()
	known := J{}
	for name, value := range body {
		if at, ok := newFields[name]; ok && !knows(t, at[0], at[1]) {
			continue
		}
		if grants, ok := value.([]J); ok && name == "grants" {
			list := make([]J, len(grants))
			for i, g := range grants {
				list[i] = KnownFields(t, g)
			}
			value = list
		}
		known[name] = value
	}
	return known
}

// knows reports whether a command of the program has a flag.
func knows(t testing.TB, command, flag string) bool {
	t.Helper()
	if earlier == "" {
		return true
	}
	help, ok := helps.Load(command)
	if !ok {
		out, err := exec.Command(earlier, append(strings.Fields(command), "--help")...).Output()
		if err != nil {
			t.Fatalf("%s %s --help: %v", earlier, command, err)
		}
		help, _ = helps.LoadOrStore(command, string(out))
	}
	return strings.Contains(help.(string), " "+flag+" ")
}
