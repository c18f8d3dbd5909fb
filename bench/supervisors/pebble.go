//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// pebbleVersion is the version that the run builds when none is installed.
const pebbleVersion = "v1.32.2"

// pebblePeer is Pebble with the shortest delays it allows, or its default ones.
type pebblePeer struct {
	*site
	http *http.Client
}

func (p *pebblePeer) prepare(context.Context) error {
	var s strings.Builder
	s.WriteString("services:\n")
	settings := "    backoff-delay: 1ms\n    backoff-factor: 1.0\n    backoff-limit: 1ms\n"
	if p.defaults {
		settings = ""
	}
	for i := range p.n {
		fmt.Fprintf(&s, "  %s:\n    override: replace\n    command: %s\n    startup: enabled\n%s",
			p.site.process(i), p.command(i), settings)
	}
	p.http = socketClient(p.path(".pebble.socket"))
	return p.write("layers/001-bench.yaml", s.String(), 0o600)
}

func (p *pebblePeer) start(context.Context) (err error) {
	cmd := exec.Command(p.tools.path("pebble"), "run", "--create-dirs")
	cmd.Env = append(os.Environ(), "PEBBLE="+p.dir)
	p.proc, err = launch(p.dir, cmd)
	return err
}

func (p *pebblePeer) status(ctx context.Context) error {
	return talk(ctx, p.http, http.MethodGet, "http://localhost/v1/services", nil, nil, 30*p.n)
}

func (p *pebblePeer) stopAll(ctx context.Context) error {
	var names []string
	for i := range p.n {
		names = append(names, p.site.process(i))
	}
	body, err := json.Marshal(map[string]any{"action": "stop", "services": names})
	if err != nil {
		return err
	}
	return talk(ctx, p.http, http.MethodPost, "http://localhost/v1/services", body, nil, 0)
}
