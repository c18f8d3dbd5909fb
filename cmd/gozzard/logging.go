package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
)

// logFlags are the flags of every long-running command.
type logFlags struct {
	level string
}

func (l *logFlags) register(f *pflag.FlagSet, level string) {
	f.StringVar(&l.level, "log-level", level, "log level: debug, info, warn or error")
	f.String("config", "", "YAML file with settings; the keys are names of flags")
}

// logger writes JSON lines: control characters of callers' words are escaped, and machines read it.
func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", l.level)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
}

// exitStorage is the code of a process that cannot trust its disk any more (EX_SOFTWARE): it must be started again
// and recover.
const exitStorage = 70

// fatal ends the process when the disk has failed under an fsync: going on would acknowledge what may be lost.
func fatal(log *slog.Logger) func(error) {
	return func(err error) {
		log.Error("the disk failed: the program ends, so that it confirms nothing that may be lost", "err", err)
		os.Exit(exitStorage)
	}
}
