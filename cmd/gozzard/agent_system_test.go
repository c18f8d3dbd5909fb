package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestAgentVerbsLookAtTheSystem: `gozzard agent` checks that the system has agents, and no verb below it replaces
// this check.
func TestAgentVerbsLookAtTheSystem(t *testing.T) {
	agent := newAgentCommand()
	if agent.PersistentPreRunE == nil || len(agent.Commands()) == 0 {
		t.Fatal("gozzard agent does not check the system")
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			if child.PersistentPreRunE != nil || child.PersistentPreRun != nil {
				t.Errorf("%s replaces the check of gozzard agent", child.CommandPath())
			}
			walk(child)
		}
	}
	walk(agent)
}
