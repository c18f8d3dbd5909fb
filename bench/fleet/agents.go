//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/internal/backup"
)

const namespace = "bench"

func procKey(i int) gozzard.Key {
	return gozzard.Key{Namespace: namespace, Name: fmt.Sprintf("process-%02d", i)}
}

// procKeys are the first processes of each host.
func procKeys(n int) (keys []gozzard.Key) {
	for i := range n {
		keys = append(keys, procKey(i))
	}
	return keys
}

// runAgents is a part: simulated hosts.
func runAgents(ctx context.Context, o order) error {
	h := crowd.Hosts{Server: o.Server, Dir: o.Dir, First: o.First, N: o.N, Template: o.Template, Running: procKeys(o.Processes)}
	if o.Way == wayTLS {
		h.API = o.API
	} else {
		h.JoinFile = filepath.Join(o.Data, backup.JoinFile)
	}
	return crowd.RunHosts(ctx, h)
}
