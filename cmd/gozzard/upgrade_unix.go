//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// errUpgrade ends a run so that the program on disk can take this process over.
var errUpgrade = errors.New("a new program takes over")

// upgradeCheck is how long a new program may take to say its version.
const upgradeCheck = 10 * time.Second

// runUpgradable runs until ctx ends. On SIGUSR2 the program file, which may have been replaced, takes this very process over with the same arguments: pid
// and children stay, so nothing that is supervised notices. A file that is not trusted, or cannot even tell its version, is refused and the old program goes on.
func runUpgradable(ctx context.Context, log *slog.Logger, trust func(file string) error, run func(context.Context) error) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's file: %w", err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	ctx, end := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-asked:
			}
			var said string
			err := trust(self)
			if err == nil { // it is run with all that this program may
				said, err = tryProgram(ctx, self)
			}
			if err == nil {
				log.Info("the program on disk takes over", "file", self, "running", version, "new", said)
				end(errUpgrade)
				return
			}
			log.Error("upgrade was refused, going on as before", "file", self, "running", version, "err", err)
		}
	})
	err = run(ctx)
	end(nil)
	wg.Wait()
	if !errors.Is(context.Cause(ctx), errUpgrade) {
		signal.Stop(asked)
		return err
	}
	if err != nil { // the state folder may be in doubt: who starts this program shall decide
		return fmt.Errorf("cannot hand over to %s: %w", self, err)
	}
	// Ignored, which the new program inherits until it listens: a second request in between must not end it.
	signal.Ignore(syscall.SIGUSR2)
	return os.NewSyscallError("cannot hand over to "+self+": execve", syscall.Exec(self, os.Args, os.Environ()))
}

// tryProgram asks a program file for its version.
func tryProgram(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeCheck)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, "version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot run it: %w", err)
	}
	words := bytes.Fields(out)
	if len(words) < 2 || string(words[0]) != "gozzard" {
		return "", fmt.Errorf("it does not say that it is gozzard: %.80q", out)
	}
	return string(words[1]), nil
}
