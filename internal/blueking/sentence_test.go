package blueking_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
)

// TestSentences: the doors answer with GSE's sentences, whether an agent sends a plain message, as agents do now, or
// GSE's own sentence, as agents of earlier versions did and as old records have it.
func TestSentences(t *testing.T) {
	const (
		start, stop, kill, restart = gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionRestart
		register                   = gozzard.ActionRegister
	)
	const unmanaged = "no need to start the process nginx(nginx_1) repeatedly that is already running; " +
		"it is running and not managed: when it ends, it is not started again; send op_type 3 to manage it"
	for _, tt := range []struct {
		action  gozzard.Action
		code    gozzard.Code
		message string // of an agent of today
		old     string // of an agent of an earlier version
		want    string
	}{
		{start, gozzard.CodeAlreadyRunning, "already running: nginx",
			"no need to start the process nginx(nginx_1) repeatedly that is already running",
			"no need to start the process nginx(nginx_1) repeatedly that is already running"},
		{start, gozzard.CodeAlreadyRunning, "already running: nginx; " + gozzard.NotSupervised,
			"already running: nginx; " + gozzard.NotSupervised, unmanaged},
		{stop, gozzard.CodeNotRunning, "not running: nginx", "no need to stop the process(nginx) that is not running",
			"no need to stop the process(nginx) that is not running"},
		{kill, gozzard.CodeNotRunning, "not running: nginx", "no need to kill the process(nginx) that is not running",
			"no need to kill the process(nginx) that is not running"},
		{start, gozzard.CodeCheckFailed, "not running: nginx; the process exited with 7; last output: bad port",
			"start process (nginx) failed, for post-check status not alive: the process exited with 7; last output: bad port",
			"start process (nginx) failed, for post-check status not alive: the process exited with 7; last output: bad port"},
		{restart, gozzard.CodeCheckFailed, "not running: nginx", "restart process (nginx) failed, for post-check status not alive",
			"restart process (nginx) failed, for post-check status not alive"},
		{stop, gozzard.CodeCheckFailed, "still running: nginx; pid 7",
			"stop process (nginx) failed, for post-check status still alive: pid 7",
			"stop process (nginx) failed, for post-check status still alive: pid 7"},
		{register, gozzard.CodeAlreadyRegistered, "already registered",
			"Fail to register, for the process info already exists.",
			"Fail to register, for the process info already exists."},
		{start, gozzard.CodeCommandFailed, "not running: a line that a command printed",
			"not running: a line that a command printed", "not running: a line that a command printed"},
	} {
		for _, message := range []string{tt.message, tt.old} {
			a := gozzard.Attempt{Key: gozzard.Key{Namespace: "gse", Name: "nginx_1"}, Action: tt.action,
				State: gozzard.AttemptFailed, Outcome: gozzard.Outcome{Code: tt.code, Message: message}}
			if _, text := (blueking.Words{}).Verdict(&a, "nginx"); text != tt.want {
				t.Errorf("%s, %s, %q: verdict is %q, want %q", tt.action, tt.code, message, text, tt.want)
			}
			if text := blueking.Sentence(tt.action, tt.code, "nginx_1", message); text != tt.want {
				t.Errorf("%s, %s, %q: sentence is %q, want %q", tt.action, tt.code, message, text, tt.want)
			}
		}
	}
}
