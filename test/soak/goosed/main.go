//go:build linux

// Command goosed is the daemon of the soak: one small program that behaves like many odd daemons, and that records
// everything that it does and everything that happens to it. It runs in the folder of its definition, where
// goosed.json says what it is.
//
//	goosed run [-launch ID] [-over PID] [-fork] [-exec]        the process itself
//	goosed bystander                                           a process that no definition names
//	goosectl start|stop|restart|reload|kill                    the commands of the definition
//	goosectl note ACTION, up, upgrade, signal NAME             parts of the commands of other programs
//
// goosectl is the same program under another name, so that a command is not taken for the daemon.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// config is goosed.json.
type config struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Journal string `json:"journal"`
	PIDFile string `json:"pid_file"` // "" when the kind has none
	Daemon  string `json:"daemon"`   // path of goosed
	Other   string `json:"other"`    // path of the same program under a name that no definition has
}

func main() {
	var c config
	b, err := os.ReadFile("goosed.json")
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "%s needs a verb and goosed.json in its folder: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(2)
	}

	switch verb := os.Args[1]; verb {
	case "run", "worker":
		run(c, verb, os.Args[2:])
	case "bystander":
		bystander(c)
	default:
		if err := control(c, verb, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
}
