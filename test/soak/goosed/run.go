//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is one running process of a definition.
type daemon struct {
	config
	role   string
	launch string
	got    chan os.Signal
	kids   []*os.Process
}

// run is the life of a main process or of a worker.
func run(c config, verb string, args []string) {
	flags := flag.NewFlagSet(verb, flag.ExitOnError)
	launch := flags.String("launch", "", "id of the launch")
	over := flags.Int("over", 0, "pid of the process that this one replaces")
	fork := flags.Bool("fork", false, "run in the background")
	execed := flags.Bool("exec", false, "this process has replaced its program")
	_ = flags.Parse(args)

	if *fork {
		detach(c, *launch, *over)
		return
	}

	d := &daemon{config: c, role: "main", launch: *launch, got: make(chan os.Signal, 64)}
	if verb == "worker" {
		d.role = "worker"
	}
	signal.Notify(d.got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)

	switch {
	case d.role == "worker":
		d.note(line{Event: "up", Role: d.role, Launch: d.launch})
	case *execed:
		d.note(line{Event: "exec", Role: d.role, Launch: d.launch})
	default:
		d.begin(*over)
	}
	d.live(*execed)
}

// detach starts the process in a session of its own and ends, as daemons do. It has the name of the daemon itself, so it
// records its own life: an agent may take it for the process while it lives.
func detach(c config, launch string, over int) {
	l := &daemon{config: c, role: "launcher", launch: launch}
	l.note(line{Event: "up", Role: l.role, Launch: launch, Text: "ready"})

	cmd := exec.Command(c.Daemon, "run", "-launch", launch, "-over", strconv.Itoa(over))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		l.end("cannot start the process", 5)
	}
	c.note(line{Event: "up", PID: cmd.Process.Pid, Role: "main", Launch: launch, Text: "forked"})

	l.end("has started the process", 0)
}

// begin records the start of a main process. It also records a live main process of another launch, which is a second
// copy.
func (d *daemon) begin(over int) {
	before := readState()
	me := state{PID: os.Getpid(), Start: startOf(os.Getpid()), Launch: d.launch}
	d.note(line{Event: "up", Role: d.role, Launch: d.launch, Text: "ready"})
	if before.alive() && before.PID != me.PID && before.Launch != d.launch {
		d.note(line{Event: "twin", Role: d.role, Launch: d.launch, Text: strconv.Itoa(before.PID)})
	}
	me.write()

	// Start what belongs to it.
	if d.Kind == "workers" {
		for range 3 {
			cmd := exec.Command(d.Daemon, "worker", "-launch", d.launch)
			if err := cmd.Start(); err == nil {
				d.kids = append(d.kids, cmd.Process)
				go func() { _ = cmd.Wait() }()
			}
		}
	}

	// Publish the pid.
	if d.Kind == "latepid" {
		time.AfterFunc(3*time.Second, d.writePID)
	} else {
		d.writePID()
	}
	if over > 0 {
		d.note(line{Event: "over", Role: d.role, Launch: d.launch, Text: strconv.Itoa(over)})
		_ = syscall.Kill(over, syscall.SIGUSR1)
	}
}

func (d *daemon) writePID() {
	if d.PIDFile == "" {
		return
	}
	next := d.PIDFile + "." + strconv.Itoa(os.Getpid())
	if os.WriteFile(next, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644) == nil {
		_ = os.Rename(next, d.PIDFile)
	}
}

// live handles signals until the process ends.
func (d *daemon) live(execed bool) {
	var next <-chan time.Time // when the kind does something by itself
	main := d.role == "main"
	switch {
	case main && d.Kind == "exec" && !execed:
		next = time.After(time.Duration(2500+rand.IntN(3000)) * time.Millisecond)
	case main && d.Kind == "rename":
		next = time.After(time.Second)
	case main && d.Kind == "crash":
		next = time.After(time.Duration(200+rand.IntN(5000)) * time.Millisecond)
	case main && d.Kind == "flood":
		go flood()
	}

	for {
		select {
		case s := <-d.got:
			d.signalled(s.(syscall.Signal))
		case <-next:
			next = nil
			d.act()
		}
	}
}

// act is what some kinds do by themselves after a while.
func (d *daemon) act() {
	switch d.Kind {
	case "rename":
		if err := os.WriteFile("/proc/self/comm", []byte("gander"), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "exec":
		_ = syscall.Exec(d.Other, []string{d.Other, "run", "-launch", d.launch, "-exec"}, os.Environ())
	case "crash":
		d.end("crashed", 1)
	}
}

// signalled records a signal and does what it asks for.
func (d *daemon) signalled(s syscall.Signal) {
	d.note(line{Event: "signal", Role: d.role, Launch: d.launch, Text: signalName(s)})
	switch s {
	case syscall.SIGTERM, syscall.SIGINT:
		if d.Kind == "stubborn" {
			return
		}
		for _, k := range d.kids {
			_ = k.Signal(syscall.SIGTERM)
		}
		d.end("ended by "+signalName(s), 0)
	case syscall.SIGQUIT:
		d.end("ended by "+signalName(s), 0)
	case syscall.SIGUSR1: // another process has taken over: serve the last requests and go
		go func() {
			time.Sleep(time.Duration(500+rand.IntN(1500)) * time.Millisecond)
			d.end("handed over", 0)
		}()
	case syscall.SIGUSR2: // a new main process beside this one, which ends it later
		cmd := exec.Command(d.Daemon, "run", "-launch", d.launch)
		if err := cmd.Start(); err == nil {
			go func() { _ = cmd.Wait() }()
		}
	}
}

// end records that the process ends by its own decision, and ends it.
func (d *daemon) end(why string, code int) {
	d.note(line{Event: "end", Role: d.role, Launch: d.launch, Text: why})
	os.Exit(code)
}

// flood prints much more than anybody reads.
func flood() {
	text := []byte(strings.Repeat("goose ", 20000) + "\n")
	for {
		_, _ = os.Stdout.Write(text)
		time.Sleep(100 * time.Millisecond)
	}
}

// bystander lives beside the definitions and records every signal. SIGTERM ends it as it ends any program.
func bystander(c config) {
	got := make(chan os.Signal, 64)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	c.note(line{Event: "up", Role: "bystander"})
	for s := range got {
		c.note(line{Event: "signal", Role: "bystander", Text: signalName(s.(syscall.Signal))})
	}
}

func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGHUP: "SIGHUP",
		syscall.SIGQUIT: "SIGQUIT", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2"}
	return names[s]
}
