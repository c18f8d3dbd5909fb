//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
)

// order is what a part does. Each part uses some of the fields.
type order struct {
	Way       string
	Server    string // address of the server
	API       string // URL of the server
	Data      string // folder of the server
	Dir       string // state folders of the agents
	Template  string // folder with the journal that new agents begin with; "": none
	First, N  int    // agents
	Processes int
	PerSecond float64 // messages of all agents
	Size      int     // bytes of a message
	Profile   string  // beginning of the names of profiles
	TLS       *crowd.KeyPair
}

// serveRole runs the part that the arguments name, if they name one.
func serveRole(args []string) (served bool, code int) { return crowd.Play("fleet", args, playRole) }

func playRole(ctx context.Context, name, text string) error {
	o, err := crowd.Order[order](text)
	if err != nil {
		return err
	}
	switch name {
	case "agents":
		return runAgents(ctx, o)
	case "server":
		return runServer(ctx, o)
	case "bare-server":
		return runBareServer(ctx, o)
	case "bare-agents":
		return crowd.RunBareAgents(ctx, bareAgents(o))
	}
	return fmt.Errorf("no part is called %q", name)
}

// startPart starts this program as a part.
func (b *bench) startPart(name string, o order) (*child.Process, error) {
	return crowd.StartPart(b.dir, name, o)
}
