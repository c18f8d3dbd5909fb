//go:build linux

package faults_test

import (
	"context"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TE13: somebody on the host who changes the policy and asks the agent for its state all the time, so that the agent would take
// the change for known, does not keep it from the server.
func TestTE13ChangeOfPolicyIsNotHidden(t *testing.T) {
	needs(t)
	t.Parallel() // it mostly waits
	b := startBounded(t, "root", `{users: ["nobody"]}`)
	events := func() string { return mustRun(t, b.s, "events", "--kind", "policy_changed") }
	if out := events(); strings.Contains(out, "digest") {
		t.Fatalf("the policy has changed already: %s", out)
	}

	// Ask without a pause.
	var asked atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if exec.CommandContext(ctx, ft.Binary(t), "agent", "status", "--data", b.Flag("--data")).Run() == nil {
				asked.Add(1)
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	ft.Until(t, time.Minute, b.Output, func() bool { return asked.Load() > 2 })

	b.WriteRules(t, `{users: ["*"]}`)
	ft.Until(t, time.Minute, b.Output, func() bool { return strings.Contains(events(), "digest") })
}
