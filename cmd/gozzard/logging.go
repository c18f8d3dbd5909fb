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

// logger logs JSON lines. Programs can read them, and control characters in the input of callers are escaped.
func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", l.level)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
}

// exitStorage is the exit code of a server or agent that cannot trust its disk any more (EX_SOFTWARE). The init
// system starts it again, and it recovers from what is on disk.
const exitStorage = 70

// fatal ends the program after a failed fsync. A program that continued would confirm what may be lost.
func fatal(log *slog.Logger) func(error) {
	return func(err error) {
		log.Error("the disk failed: the program ends, so that it confirms nothing that may be lost", "err", err)
		os.Exit(exitStorage)
	}
}
