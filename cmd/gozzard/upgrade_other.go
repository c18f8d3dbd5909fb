//go:build !unix

package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/gozzard/gozzard/internal/selfupdate"
)

// runUpgradable runs until ctx ends. Here a program cannot take its own process over: stop it, replace it and start it.
func runUpgradable(ctx context.Context, _ *slog.Logger, _ *selfupdate.Updater, run func(context.Context) error) error {
	return run(ctx)
}

func giveBack(*selfupdate.Updater, *slog.Logger, string) bool { return false }

func handOver(string) error {
	return errors.New("a program cannot take its own process over on this system")
}
