package gozzard_test

import (
	"testing"

	"github.com/gozzard/gozzard"
)

func TestAgentID(t *testing.T) {
	for _, id := range []gozzard.AgentID{"a", "020000000242ac11", "Host_7-b"} {
		if err := id.Validate(); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}

	long := make([]byte, 65)
	for i := range long {
		long[i] = 'a'
	}

	// An agent id is one token of a subject: what separates or matches tokens must not be in it.
	for _, id := range []gozzard.AgentID{"", "a.b", "*", ">", "a b", "a/b", "é", "a\n", gozzard.AgentID(long)} {
		if err := id.Validate(); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
}

// A new id is none of the words that mean something else. Ids that agents make, and those of BlueKing, are accepted.
func TestNewAgentID(t *testing.T) {
	for _, id := range []gozzard.AgentID{"0", "020000000242ac11", "0102030405060708090a0b0c0d0e0f10", "server-1", "Host_7-b",
		"0200000000525400abcdef160123456789"} {
		if err := id.CheckNew(); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []gozzard.AgentID{"", "a.b", "é", "ѕerver", "-", "_", "--force", "_x", "server", "SERVER", "System", "admin",
		"gozzard", "localhost", "all", "self", "root"} {
		if err := id.CheckNew(); err == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}

func TestHostAddr(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{"0:10.0.0.1", "0:10.0.0.1"},
		{"2:fe80::1", "2:fe80::1"},
		{"2:::ffff:10.0.0.1", "2:10.0.0.1"},
	} {
		addr, err := gozzard.ParseHostAddr(tt.in)
		if err != nil || addr.String() != tt.out {
			t.Errorf("%q is read as %v: %v", tt.in, addr, err)
		}
	}

	for _, s := range []string{"", "10.0.0.1", ":10.0.0.1", "-1:10.0.0.1", "+1:10.0.0.1", "01:10.0.0.1", "0:",
		"0:host", "0:10.0.0.01", "0:0.0.0.0",
		"0:224.0.0.1", "0:255.255.255.255", "0:::", "0:fe80::1%eth0", "0:10.0.0.1 ", "99999999999999999999:10.0.0.1"} {
		if addr, err := gozzard.ParseHostAddr(s); err == nil {
			t.Errorf("%q is read as %v", s, addr)
		}
	}
}

func TestKeyOrder(t *testing.T) {
	ordered := []gozzard.Key{{"a", "a"}, {"a", "b"}, {"ab", "a"}, {"b", ""}}
	for i, x := range ordered {
		for j, y := range ordered {
			got := x.Compare(y)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v compared with %v is %d", x, y, got)
			}
		}
	}
}
