//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/internal/selfupdate"
)

// errUpgrade ends a run so that the program on disk can take this process over.
var errUpgrade = errors.New("a new program takes over")

// handOverGrace is how long a program that is rolled back may take to end its work. What it leaves open then closes
// with it, as in a crash.
const handOverGrace = 5 * time.Second

// runUpgradable runs until ctx ends. On SIGUSR2, or when the updater has put a release in place, the program file
// takes this very process over with the same arguments: pid and children stay, so nothing that is supervised
// notices. A file that is not trusted, or cannot even tell its version, is refused and the old program goes on. A
// program on trial that is not welcomed in time, or fails, gives its process back to the one before. up may be nil.
func runUpgradable(ctx context.Context, log *slog.Logger, up *selfupdate.Updater,
	run func(context.Context) error) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's file: %w", err)
	}

	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	ctx, end := context.WithCancelCause(ctx)
	w := &upgradeWatch{log: log, self: self, up: up, asked: asked, end: end}
	var wg sync.WaitGroup
	wg.Go(func() { w.run(ctx) })
	err = run(ctx)
	over := context.Cause(ctx) // before it is ended here
	end(nil)
	wg.Wait()

	if !errors.Is(over, errUpgrade) {
		if err != nil && over == nil && giveBack(up, log, fmt.Sprintf("it ended: %v", err)) {
			return handOver(self)
		}
		signal.Stop(asked)
		return err
	}

	if err != nil && !w.back { // the state folder may be in doubt: who starts this program shall decide
		return fmt.Errorf("cannot hand over to %s: %w", self, err)
	}

	return handOver(self)
}

// upgradeWatch decides when a run ends for another program.
type upgradeWatch struct {
	log   *slog.Logger
	self  string
	up    *selfupdate.Updater
	asked <-chan os.Signal
	end   context.CancelCauseFunc
	back  bool // to the program before; of run, and of who waits for it
}

func (w *upgradeWatch) run(ctx context.Context) {
	var placed <-chan struct{}
	var limit <-chan time.Time
	var welcomed <-chan struct{}
	trial := false

	if w.up != nil {
		placed = w.up.Placed()
		if trial, welcomed = w.up.OnTrial(); trial {
			limit = time.After(w.up.Limit())
			w.log.Info("this program is on trial until the server welcomes it", "version", version, "limit",
				w.up.Limit().String())
		}
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-welcomed:
			trial, welcomed, limit = false, nil, nil
			continue
		case <-limit:
			if giveBack(w.up, w.log, "the server did not welcome it within "+w.up.Limit().String()) {
				w.back = true
				w.end(errUpgrade)
				time.AfterFunc(handOverGrace, func() {
					w.log.Error("this program does not end and is left in the middle", "err", handOver(w.self))
				})
				return
			}
			trial, limit = false, nil
			continue
		case <-w.asked:
		case <-placed:
		}
		if trial {
			w.log.Warn("upgrade was refused: this program is on trial itself", "running", version)
			continue
		}
		var said string
		err := trustProgram(w.self)
		if err == nil { // it is run with all that this program may
			said, err = selfupdate.SaysVersion(ctx, w.self)
		}
		if err == nil {
			w.log.Info("the program on disk takes over", "file", w.self, "running", version, "new", said)
			w.end(errUpgrade)
			return
		}
		w.log.Error("upgrade was refused, going on as before", "file", w.self, "running", version, "err", err)
	}
}

// giveBack ends a trial by putting the previous program in place. False: there is no trial, or nothing to go back to.
func giveBack(up *selfupdate.Updater, log *slog.Logger, reason string) bool {
	if up == nil {
		return false
	}
	if trial, _ := up.OnTrial(); !trial {
		return false
	}
	if err := up.RollBack(reason); err != nil {
		log.Error("the new program stays though it failed", "version", version, "reason", reason, "err", err)
		return false
	}
	return true
}

// handOver gives this process to the program file. It comes back only with an error.
func handOver(self string) error {
	// Ignored, which the new program inherits until it listens: a second request in between must not end it.
	signal.Ignore(syscall.SIGUSR2)
	return os.NewSyscallError("cannot hand over to "+self+": execve", syscall.Exec(self, os.Args, os.Environ()))
}
