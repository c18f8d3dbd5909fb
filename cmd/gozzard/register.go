package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// maxDocument limits the size of a file of definitions.
const maxDocument = 4 << 20

// registerOptions are the flags of `gozzard register`.
type registerOptions struct {
	taskFlags
	file  string
	hosts []string
}

// newRegisterCommand is `gozzard register`.
func newRegisterCommand(env *cliEnv) *cobra.Command {
	var o registerOptions
	cmd := &cobra.Command{
		Use:   "register -f FILE",
		Short: "Register processes on hosts, or change their definitions",
		Long: `Define processes on hosts, or replace their definitions there. Nothing is started or stopped.

FILE is YAML or JSON with one document per process (YAML documents are separated by ---); "-" reads
standard input:

  name: web
  namespace: shop                    # "default" when missing
  hosts: [{ip: 127.0.0.1}]           # the only host when missing
  command: [./web, --port, "8080"]   # or a shell line; it stays in the foreground
  folder: /opt/web
  user: www
  env: {MODE: production}
  stop_signal: INT                   # then SIGKILL after stop_timeout
  restart: on-failure
  memory: 512M
  cpu: 1.5                           # cores
  health: http://127.0.0.1:8080/ping

docs/definition.md has all keys, and BlueKing's nested form (spec) works too.` + exitHelp,
		Example: `  gozzard register -f web.yaml
  gozzard register -f web.yaml --host 10.0.0.1 --host 10.0.0.2
  generate-definitions | gozzard register -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.register(cmd.Context(), &o, cmd.InOrStdin())
		},
	}

	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "`FILE` with definitions; - is standard input (required)")
	f.StringArrayVar(&o.hosts, "host", nil, "register on this `HOST` instead of those in the file; may be repeated")
	o.taskFlags.register(cmd)
	return cmd
}

// register registers the documents of a file, one task for each.
func (env *cliEnv) register(ctx context.Context, o *registerOptions, in io.Reader) error {
	docs, err := o.documents(in)
	if err != nil {
		return err
	}

	var worst error
	for i, doc := range docs {
		err := env.runTask(ctx, &o.taskFlags, "register "+doc.name, func(c *client.Client) (client.Accepted, error) {
			a, err := c.RegisterDocument(ctx, doc.json)
			if err != nil && len(docs) > 1 {
				return a, fmt.Errorf("document %d: %w", i+1, err)
			}
			return a, err
		})
		var ex *exitError
		if err != nil && (!errors.As(err, &ex) || ex.err != nil || ex.code == exitDetached) {
			return err // the server rejected it, or the caller does not wait any more: the rest is not sent
		}
		if err != nil {
			worst = err
		}
	}

	return worst
}

// document is one definition in the form of the API.
type document struct {
	name string // is shown with the progress
	json []byte
}

// documents reads the file and converts each of its documents to JSON. The server checks their contents and names
// the place of each fault.
func (o *registerOptions) documents(in io.Reader) ([]document, error) {
	// Read the file.
	if o.file == "" {
		return nil, usage("give the definitions with -f FILE; -f - reads standard input")
	}

	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, usage("cannot read the definitions: %w", err)
		}
		defer f.Close()
		in = f
	}

	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err != nil {
		return nil, usage("cannot read the definitions: %w", err)
	}
	if len(text) > maxDocument {
		return nil, usage("definitions in %s have more than %d MiB", o.file, maxDocument>>20)
	}

	hosts, err := parseHostFlags(o.hosts)
	if err != nil {
		return nil, err
	}

	// Convert its documents.
	var docs []document
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, usage("cannot read the definitions in %s: %w", o.file, err)
		}
		if v == nil { // nothing between two separators
			continue
		}
		doc, err := toDocument(v, hosts)
		if err != nil {
			return nil, usage("definitions in %s, document %d: %w", o.file, len(docs)+1, err)
		}
		docs = append(docs, doc)
	}

	if len(docs) == 0 {
		return nil, usage("there is no definition in %s", o.file)
	}

	return docs, nil
}

// toDocument converts a definition to JSON. hosts replace those of the definition, if there are any.
func toDocument(v any, hosts []client.Host) (document, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return document{}, errors.New("a definition is a mapping with keys such as name and command")
	}
	if len(hosts) > 0 {
		m["hosts"] = hosts
		delete(m, "all")
	}

	b, err := json.Marshal(m)
	if err != nil {
		return document{}, fmt.Errorf("cannot convert to JSON: %w", err)
	}

	return document{name: printable(fmt.Sprint(m["name"])), json: b}, nil
}
