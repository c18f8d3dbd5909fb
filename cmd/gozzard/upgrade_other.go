//go:build !unix

package main

import (
	"context"
	"log/slog"
)

// runUpgradable runs until ctx ends. Here a program cannot take its own process over: stop it, replace it and start it.
func runUpgradable(ctx context.Context, _ *slog.Logger, _ func(file string) error, run func(context.Context) error) error {
	return run(ctx)
}
