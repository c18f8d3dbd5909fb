//go:build linux

package faults_test

import (
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// The verdicts that a stop may have.
var (
	saysOK          = ft.Entry{Code: 0, Msg: "success"}
	saysOffline     = ft.Entry{Code: 117, Msg: "the agent is not connected"}
	saysNever       = ft.Entry{Code: 65535, Msg: "not executed: superseded"}
	saysInterrupted = ft.Entry{Code: 65535, Msg: "interrupted: the agent ended"}
	saysFailed      = ft.Entry{Code: 65535, Msg: "exit status 1"}
)

func TestStopFault(t *testing.T) {
	for _, tt := range []struct {
		e       ft.Entry
		running int
		fault   bool
	}{
		{saysOK, 0, false}, {saysOK, 1, true}, {saysOK, 2, true},
		{saysOffline, 1, false}, {saysOffline, 0, true},
		{saysNever, 1, false}, {saysNever, 0, true},
		{saysInterrupted, 0, false}, {saysInterrupted, 1, false}, {saysInterrupted, 2, true},
		{saysFailed, 0, true}, {saysFailed, 1, true},
	} {
		if fault := stopFault(tt.e, tt.running); (fault != "") != tt.fault {
			t.Errorf("%+v with %d copies: %q", tt.e, tt.running, fault)
		}
	}
}
