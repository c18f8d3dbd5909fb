package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The formats of a log.
const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

// logFlags are the flags of every long-running command.
type logFlags struct {
	level  string
	format string
}

func (l *logFlags) register(cmd *cobra.Command, level string) {
	f := cmd.Flags()
	f.StringVar(&l.level, "log-level", level, "log level: debug, info, warn or error")
	f.StringVar(&l.format, "log-format", logAuto,
		"log format: text for people, json for programs; auto is text on a terminal and json elsewhere")
	registerConfig(f)
	completeFixed(cmd, "log-level", "debug", "info", "warn", "error")
	completeFixed(cmd, "log-format", logAuto, logText, logJSON)
}

// registerConfig adds the flag of the file with settings.
func registerConfig(f *pflag.FlagSet) {
	f.String("config", "", "YAML file with settings; the keys are names of flags")
}

// logger logs for people or for programs. In both forms control characters in the input of callers are escaped.
func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", l.level)
	}

	terminal := isTerminal(w)
	switch {
	case l.format != logAuto && l.format != logText && l.format != logJSON:
		return nil, fmt.Errorf("--log-format %q: use auto, text or json", l.format)
	case l.format == logText || l.format == logAuto && terminal:
		return slog.New(newTextLog(w, level, terminal && os.Getenv("NO_COLOR") == "")), nil
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil
}

// isTerminal reports whether an output is a terminal that people read.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// exitStorage is the exit code of a server or agent that cannot trust its disk any more (EX_SOFTWARE). The init
// system starts it again, and it recovers from what is on disk.
const exitStorage = 70

// fatal ends the program after a failed fsync. A program that continued would confirm what may be lost.
func fatal(log *slog.Logger) func(error) {
	return func(err error) {
		log.Error("the program ends, so that it confirms nothing that may be lost", "err", err)
		os.Exit(exitStorage)
	}
}
