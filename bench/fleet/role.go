//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gozzard/gozzard/bench/child"
)

// roleFlag makes this program one of the parts that are measured as separate processes. It is the first argument and
// hidden. The second argument is the order of the part, in JSON.
const roleFlag = "-role="

// order is what a part does. Each part uses some of the fields.
type order struct {
	Way       string
	Server    string // address of the server
	Data      string // folder of the server
	Dir       string // state folders of the agents
	Template  string // folder with the journal that new agents begin with; "": none
	First, N  int    // agents
	Processes int
	PerSecond float64 // messages of all agents
	Size      int     // bytes of a message
	Profile   string  // beginning of the names of profiles
	TLS       *keyPair
}

// serveRole runs the part that the arguments name, if they name one.
func serveRole(args []string) (served bool, code int) {
	if len(args) != 2 || !strings.HasPrefix(args[0], roleFlag) {
		return false, 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := playRole(ctx, strings.TrimPrefix(args[0], roleFlag), args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		return true, 1
	}
	return true, 0
}

func playRole(ctx context.Context, name, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("cannot read the order: %w", err)
	}
	switch name {
	case "agents":
		return runAgents(ctx, o)
	case "server":
		return runServer(ctx, o)
	case "bare-server":
		return runBareServer(ctx, o)
	case "bare-agents":
		return runBareAgents(ctx, o)
	}
	return fmt.Errorf("no part is called %q", name)
}

// startPart starts this program as a part.
func (b *bench) startPart(name string, o order) (*child.Process, error) {
	return child.StartSelf(b.dir, name, roleFlag+name, o)
}

// stopAll stops parts, the last one first.
func stopAll(list []*child.Process) {
	for i := len(list) - 1; i >= 0; i-- {
		list[i].Stop()
	}
}
