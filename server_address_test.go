package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestServerAddress(t *testing.T) {
	for _, good := range []gozzard.ServerAddress{
		{Agents: "10.0.0.1:4230"}, {Agents: "[2001:db8::1]:4230", API: "https://[2001:db8::1]:8443"},
		{Agents: "gz-1.example.com:4230", API: "https://gz-1.example.com"},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}

	for _, bad := range []gozzard.ServerAddress{
		{}, {Agents: "10.0.0.1"}, {Agents: ":4230"}, {Agents: "host:0"}, {Agents: "host:99999"}, {Agents: "host:http"},
		{Agents: "a\nb:1"}, {Agents: strings.Repeat("a", 600) + ":1"}, {API: "https://a"},
		{Agents: "a:1", API: "http://a"}, {Agents: "a:1", API: "https://u:p@a"}, {Agents: "a:1", API: "https://a/x"},
		{Agents: "a:1", API: "https://a?x"}, {Agents: "a:1", API: "a:1"},
	} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
