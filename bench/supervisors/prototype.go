//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

// prototypePeer is the limit: the command in the folder prototype.
type prototypePeer struct{ *site }

func (p *prototypePeer) prepare(context.Context) error { return nil }

func (p *prototypePeer) start(context.Context) error {
	_ = os.Remove(p.path("socket")) // of one that was killed
	return p.launch(p.tools.path("prototype"), p.program(), strconv.Itoa(p.n), p.path("socket"))
}

func (p *prototypePeer) status(ctx context.Context) error  { return p.ask(ctx, "s", 4*p.n) }
func (p *prototypePeer) stopAll(ctx context.Context) error { return p.ask(ctx, "t", 1) }

// ask sends one letter and reads the answer.
func (p *prototypePeer) ask(ctx context.Context, letter string, least int) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", p.path("socket"))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, letter); err != nil {
		return err
	}
	text, err := io.ReadAll(c)
	if err == nil && len(text) < least {
		err = fmt.Errorf("the prototype has answered %d bytes only", len(text))
	}
	return err
}
