package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// editOptions are the flags of `gozzard edit`.
type editOptions struct {
	processFlags
	taskFlags
	yes bool
}

// newEditCommand is `gozzard edit`.
func newEditCommand(env *cliEnv) *cobra.Command {
	var o editOptions
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change the definition of a process in an editor",
		Long: `Open the definition of a process in an editor: that of $VISUAL or $EDITOR, else vi or nano. When the editor
ends, the definition is checked, the changes are shown, and after your yes it is registered. Nothing is
started or stopped; "gozzard restart" brings a running process its new definition.

A definition with faults opens again, with the faults above it. To give up, leave the text as it is. What
you have typed stays in a file until it is registered. If another caller changed the definition meanwhile,
nothing is registered.

A process on several hosts is edited once, if its definition is the same there. Else choose one with
--host.` + exitHelp,
		Example: `  gozzard edit web
  gozzard edit web -n shop --host 10.0.0.1
  EDITOR='sed -i s/8080/8081/' gozzard edit web --yes`,
		Args:              oneName,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			return env.edit(cmd.Context(), &o, names[0], cmd.InOrStdin())
		},
	}

	o.processFlags.register(env, cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "register without asking")
	o.taskFlags.register(cmd)
	return cmd
}

// edit changes a definition.
func (env *cliEnv) edit(ctx context.Context, o *editOptions, name string, in io.Reader) error {
	// Check the flags before a person types anything.
	q, err := o.query([]string{name})
	if err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	editor, err := env.editor()
	if err != nil {
		return err
	}
	if f, ok := in.(*os.File); !o.yes && (!ok || !isatty.IsTerminal(f.Fd())) {
		return usage("standard input is not a terminal, so the command cannot ask: give --yes")
	}

	// Read the definition.
	defs, err := env.definitions(ctx, q, false)
	if err != nil {
		return err
	}
	e := &edited{env: env, o: o, editor: editor, in: bufio.NewReader(in), query: q, before: defs}
	if e.text, err = env.commonText(defs); err != nil {
		return err
	}

	// Edit it in a folder that no other account can enter.
	if e.folder, err = os.MkdirTemp("", "gozzard-edit-"); err != nil {
		return failed(fmt.Errorf("cannot make a folder for the editor: %w", err))
	}
	e.file = filepath.Join(e.folder, fileOf(name))
	err = e.run(ctx)
	if e.keep {
		env.remark("gozzard: what you typed is in %s; register it with: gozzard register -f %[1]s", e.file)
		return err
	}
	return errors.Join(err, os.RemoveAll(e.folder))
}

// fileOf is the name of the file of a definition: editors choose colours by it.
func fileOf(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", r) {
			return r
		}
		return '_'
	}, name) + ".yaml"
}

// editor is the command of the editor.
func (env *cliEnv) editor() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v, ok := env.lookup(name); ok && strings.TrimSpace(v) != "" {
			return v, nil
		}
	}
	for _, name := range []string{"vi", "nano"} {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "", usage("there is no editor: neither $VISUAL nor $EDITOR is set, and there is neither vi nor nano. " +
		"Set EDITOR, or use gozzard show NAME >FILE and gozzard register -f FILE")
}

// edited is a definition in an editor.
type edited struct {
	env    *cliEnv
	o      *editOptions
	editor string
	in     *bufio.Reader
	query  client.ProcessQuery
	before []client.Definition
	text   []byte // as it was read
	folder string
	file   string
	keep   bool // the file has what a person typed and is not registered
}

// run lets a person edit until the definition is registered or the person gives up.
func (e *edited) run(ctx context.Context) error {
	if err := e.write(e.text); err != nil {
		return err
	}
	last := e.text
	for {
		// Edit.
		typed, err := e.open(ctx)
		if err != nil {
			return err
		}
		if bytes.Equal(typed, e.text) || len(typed) == 0 {
			e.keep = false
			return e.env.say("nothing changed\n")
		}
		e.keep = true
		if bytes.Equal(typed, last) {
			return usage("the definition still has the faults that stand above it; nothing was registered")
		}
		last = typed

		// Check.
		docs, plan, faults, err := e.check(ctx)
		if err != nil {
			return err
		}
		if len(faults) > 0 {
			for _, f := range faults {
				e.env.remark("%s", f)
			}
			if err := e.write(withFaults(typed, faults)); err != nil {
				return err
			}
			continue
		}

		// Ask, and register.
		if yes, err := e.confirm(plan); err != nil || !yes {
			return err
		}
		return e.register(ctx, docs, plan)
	}
}

// write writes the file that the editor opens.
func (e *edited) write(text []byte) error {
	if err := os.WriteFile(e.file, text, 0o600); err != nil {
		return failed(fmt.Errorf("cannot write the file for the editor: %w", err))
	}
	return nil
}

// open runs the editor and reads the file without the faults above it.
func (e *edited) open(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", e.editor+` "$@"`, e.editor, e.file)
	if runtime.GOOS == "windows" {
		words := strings.Fields(e.editor)
		cmd = exec.CommandContext(ctx, words[0], append(words[1:], e.file)...)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		e.keep = true
		return nil, failed(fmt.Errorf("the editor %s failed: %w", printable(e.editor), err))
	}
	text, err := readDefinitions(e.file, nil)
	if err != nil {
		return nil, err
	}
	return withoutFaults(text), nil
}

// faultMark begins the lines with faults in the file.
const faultMark = "#! "

func withFaults(text []byte, faults []string) []byte {
	var b bytes.Buffer
	for _, f := range faults {
		fmt.Fprintf(&b, "%s%s\n", faultMark, printable(f))
	}
	b.Write(text)
	return b.Bytes()
}

func withoutFaults(text []byte) []byte {
	for bytes.HasPrefix(text, []byte(faultMark)) {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// check checks what a person has typed. It returns the faults as lines.
func (e *edited) check(ctx context.Context) (docs []document, plan []client.Preview, faults []string, err error) {
	// Read it without the faults, so that the lines are those of the text below them.
	typed, err := readDefinitions(e.file, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	docs, err = readDocuments("-", nil, bytes.NewReader(withoutFaults(typed)))
	if err != nil {
		return nil, nil, []string{strings.Split(err.Error(), "\n")[0]}, nil
	}
	if len(docs) != 1 {
		return nil, nil, []string{e.env.text("there must be one definition")}, nil
	}
	var is struct{ Namespace, Name string }
	if err := json.Unmarshal(docs[0].json, &is); err != nil || is.Name != e.before[0].Name ||
		is.Namespace != e.before[0].Namespace {
		return nil, nil, []string{e.env.text("name and namespace must stay %s and %s; gozzard register defines another process",
			e.before[0].Name, e.before[0].Namespace)}, nil
	}

	// Ask the server.
	err = e.env.withClient(func(c *client.Client) error {
		p, err := c.PreviewDocument(ctx, docs[0].json)
		plan = []client.Preview{p}
		for _, l := range e.env.faultLines(&docs[0], err) {
			faults = append(faults, e.env.text("line %s", l))
		}
		if len(faults) > 0 {
			return nil
		}
		return err
	})
	return docs, plan, faults, err
}

// confirm shows what changes and asks.
func (e *edited) confirm(plan []client.Preview) (bool, error) {
	for i := range plan {
		if err := e.env.printPlan(&plan[i]); err != nil {
			return false, err
		}
	}
	if e.o.yes {
		return true, nil
	}

	if err := checkWrite(fmt.Fprint(e.env.errs, e.env.text("Register this? [y/N] "))); err != nil {
		return false, err
	}
	answer, err := e.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, failed(fmt.Errorf("cannot read the answer: %w", err))
	}

	answer = strings.ToLower(strings.TrimSpace(answer))
	if answer != "y" && answer != "yes" {
		return false, e.env.say("nothing was registered\n")
	}
	return true, nil
}

// register registers what was typed, unless another caller changed the definition meanwhile.
func (e *edited) register(ctx context.Context, docs []document, plan []client.Preview) error {
	now, err := e.env.definitions(ctx, e.query, false)
	if err != nil {
		return err
	}
	if !sameDefinitions(e.before, now) {
		return failed(errors.New("another caller changed the definition meanwhile; nothing was registered. " +
			"Look at it with gozzard show, then edit it again"))
	}

	e.o.note = e.env.changeText(&plan[0])
	err = e.env.runTask(ctx, &e.o.taskFlags, "register "+docs[0].name, func(c *client.Client) (client.Accepted, error) {
		return c.RegisterDocument(ctx, docs[0].json)
	})
	var ex *exitError
	e.keep = err != nil && !(errors.As(err, &ex) && ex.code == exitDetached)
	return err
}

// sameDefinitions reports whether definitions are what they were.
func sameDefinitions(was, is []client.Definition) bool {
	return slices.EqualFunc(was, is, func(a, b client.Definition) bool { return bytes.Equal(a.Document, b.Document) })
}

// commonText is the text of definitions that differ in their hosts only.
func (env *cliEnv) commonText(defs []client.Definition) ([]byte, error) {
	var first map[string]any
	var hosts []json.RawMessage
	for i := range defs {
		var doc map[string]any
		var at struct{ Hosts []json.RawMessage }
		if err := errors.Join(json.Unmarshal(defs[i].Document, &doc), json.Unmarshal(defs[i].Document, &at)); err != nil {
			return nil, failed(fmt.Errorf("cannot decode the definition: %w", err))
		}
		hosts = append(hosts, at.Hosts...)
		rest := maps.Clone(doc)
		delete(rest, "hosts")
		switch {
		case i == 0:
			first = rest
		case defs[i].Name != defs[0].Name || defs[i].Namespace != defs[0].Namespace:
			return nil, usage("the name matches several processes, such as %s and %s: choose one with NAME and -n NAMESPACE",
				processName(&defs[0]), processName(&defs[i]))
		case !reflect.DeepEqual(rest, first):
			return nil, usage("%s has different definitions on its hosts: choose one with --host HOST", processName(&defs[0]))
		}
	}

	// The first definition, with the hosts of all.
	d := defs[0]
	list, err := json.Marshal(hosts)
	if err != nil {
		return nil, failed(fmt.Errorf("cannot encode the definition: %w", err))
	}
	if len(defs) > 1 {
		var one struct{ Hosts json.RawMessage }
		if err := json.Unmarshal(d.Document, &one); err != nil {
			return nil, failed(fmt.Errorf("cannot decode the definition: %w", err))
		}
		d.Document = bytes.Replace(d.Document, one.Hosts, list, 1)
	}
	text, err := definitionText(&d)
	return append([]byte(env.originText(&d)+"\n"), text...), err
}

// processName is a process as people write it.
func processName(d *client.Definition) string { return printable(d.Namespace + "/" + d.Name) }
