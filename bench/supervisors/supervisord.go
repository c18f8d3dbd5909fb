//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// supervisordPeer is supervisord without the seconds that it waits by default before it considers a process started.
type supervisordPeer struct {
	*site
	http *http.Client
}

func (p *supervisordPeer) prepare(context.Context) error {
	var s strings.Builder
	fmt.Fprintf(&s, `[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
loglevel=critical
pidfile=%[1]s/supervisord.pid
childlogdir=%[1]s
minfds=%[2]d
[unix_http_server]
file=%[1]s/supervisor.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
`, p.dir, 200+4*p.n)

	settings := "autorestart=true\nstartsecs=0\nstartretries=1000000\nstdout_logfile=NONE\nstderr_logfile=NONE\n"
	if p.defaults {
		settings = ""
	}
	for i := range p.n {
		fmt.Fprintf(&s, "[program:%s]\ncommand=%s\n%s", p.site.process(i), p.command(i), settings)
	}

	p.http = socketClient(p.path("supervisor.sock"))
	return p.write("supervisord.conf", s.String(), 0o600)
}

func (p *supervisordPeer) start(context.Context) error {
	return p.launch("supervisord", "-n", "-u", "root", "-c", p.path("supervisord.conf"))
}

func (p *supervisordPeer) call(ctx context.Context, method string, least int) error {
	body := []byte(`<?xml version="1.0"?><methodCall><methodName>supervisor.` + method +
		`</methodName><params/></methodCall>`)
	xml := func(r *http.Request) { r.Header.Set("Content-Type", "text/xml") }
	return talk(ctx, p.http, http.MethodPost, "http://supervisor/RPC2", body, xml, least)
}

func (p *supervisordPeer) status(ctx context.Context) error {
	return p.call(ctx, "getAllProcessInfo", 100*p.n)
}
func (p *supervisordPeer) stopAll(ctx context.Context) error {
	return p.call(ctx, "stopAllProcesses", 0)
}
