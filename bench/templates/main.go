//go:build linux

// Command templates measures how long it takes to render the template of a configuration file for all instances of a
// business, and compares it with Mako of Debian in the same run. It checks that both give the same texts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// size says how much is measured.
type size struct {
	name                 string
	sets, modules, hosts int // modules of a set, hosts of a module
	limit                time.Duration
	text                 int // bytes of the template, about
}

func fullSize() size {
	return size{name: "full", sets: 10, modules: 20, hosts: 50, text: 20_000, limit: 30 * time.Minute}
}

func quickSize() size {
	return size{name: "quick", sets: 2, modules: 2, hosts: 5, text: 2_000, limit: 5 * time.Minute}
}

func main() {
	quick := flag.Bool("quick", false, "small counts, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the tables; default bench/templates/RESULTS.md, none with -quick")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "templates: no arguments are taken")
		os.Exit(2)
	}

	s, path := fullSize(), *out
	if *quick {
		s = quickSize()
	} else if path == "" {
		path = "bench/templates/RESULTS.md"
	}
	os.Exit(sheet.Command("templates", path, s.limit, func(ctx context.Context) (*results, error) { return run(ctx, s) }))
}
