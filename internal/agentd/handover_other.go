//go:build !unix

package agentd

import (
	"context"
	"errors"
)

// runUpgradable calls run until ctx ends. On this system a program cannot hand its process over: stop it, replace it
// and start it again.
func runUpgradable(ctx context.Context, _ Options, run func(context.Context) error) error {
	return run(ctx)
}

func rollBack(Options, string) bool { return false }

func handOver(string) error {
	return errors.New("a program cannot hand its process over on this system")
}
