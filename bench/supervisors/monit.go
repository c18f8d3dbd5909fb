//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// monitPeer is monit with a cycle of one second, the shortest it allows. It watches only daemons, by their pid files.
type monitPeer struct {
	*site
	http *http.Client
}

func (p *monitPeer) prepare(context.Context) error {
	var s strings.Builder
	cycle := 1
	if p.defaults {
		cycle = 30 // of the example that comes with monit
	}
	fmt.Fprintf(&s, `set daemon %[2]d
set pidfile %[1]s/monit.pid
set idfile %[1]s/monit.id
set statefile %[1]s/monit.state
set logfile %[1]s/monit.log
set httpd unixsocket %[1]s/monit.sock
  allow bench:bench
`, p.dir, cycle)

	for i := range p.n {
		fmt.Fprintf(&s, "check process %s with pidfile %s\n  start program = \"/bin/sh -c '%s'\"\n  stop program = \"/bin/sh -c 'kill `cat %s`'\"\n",
			p.site.process(i), p.pidFile(i), p.daemon(i), p.pidFile(i))
	}

	p.http = socketClient(p.path("monit.sock"))
	return p.write("monitrc", s.String(), 0o600)
}

func (p *monitPeer) start(context.Context) error {
	return p.launch("monit", "-I", "-c", p.path("monitrc"))
}

func (p *monitPeer) status(ctx context.Context) error {
	login := func(r *http.Request) { r.SetBasicAuth("bench", "bench") }
	return talk(ctx, p.http, http.MethodGet, "http://localhost/_status?format=xml", nil, login, 100*p.n)
}

func (p *monitPeer) stopAll(ctx context.Context) error {
	return p.site.run(ctx, "monit", "-c", p.path("monitrc"), "stop", "all")
}
