package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// maxTemplate limits the content of a template, as the server does.
const maxTemplate = 1 << 20

// configDocument is a template in a file.
type configDocument struct {
	Biz         int       `yaml:"biz"`
	Name        string    `yaml:"name"`
	FileName    string    `yaml:"file_name"`
	Folder      string    `yaml:"folder"`
	Owner       string    `yaml:"owner"`
	Group       string    `yaml:"group"`
	Mode        octalText `yaml:"mode"`
	LineEnds    string    `yaml:"line_ends"`
	Description string    `yaml:"description"`
	Content     *string   `yaml:"content"`
	ContentFile string    `yaml:"content_file"`
	Bind        *struct {
		Processes []int `yaml:"processes"`
		Templates []int `yaml:"templates"`
	} `yaml:"bind"`
}

// octalText is a mode as it is written. YAML reads 0644 without quotes as the number 420, and mode 0420 is another one.
type octalText string

// UnmarshalYAML takes the digits from the source. The server checks them.
func (m *octalText) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.StringNode:
		*m = octalText(n.Value)
	case *ast.IntegerNode:
		*m = octalText(n.Token.Value)
	case *ast.NullNode:
	default:
		return fmt.Errorf("line %d: mode must be octal digits in quotes, such as \"0644\"", n.GetToken().Position.Line)
	}
	return nil
}

// configApplyOptions are the flags of `gozzard config apply`.
type configApplyOptions struct {
	configOptions
	file         string
	dry, replace bool
}

// newConfigApplyCommand is `gozzard config apply`.
func newConfigApplyCommand(env *cliEnv) *cobra.Command {
	var o configApplyOptions
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply templates from a file",
		Long: `Make templates what a file says, or add them: fields, content and what each is bound to. A new content
becomes the active version. The plan is printed first. If one template is wrong, none is changed.
Applying the same file again changes nothing. No file on a host is touched: that is a release.

FILE is YAML with a document for each template; "-" reads standard input:

  biz: 2
  name: nginx                             # finds the template
  file_name: nginx.conf
  folder: /etc/shop                       # file_name and folder may have expressions, too
  owner: shop
  group: shop
  mode: "0640"                            # default: 0644
  line_ends: lf                           # or crlf; default: lf
  content_file: nginx.conf.tpl            # beside FILE, or below its folder; or the text as content: |
  bind: {processes: [46], templates: []}  # ids of processes, and of process templates; missing: stays as it is

Exit code: 0 done or nothing to do, 1 rejected or failed, 2 the file is wrong, 4 not allowed.`,
		Example: `  gozzard config apply -f nginx.yaml --dry-run
  gozzard config apply -f nginx.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.applyConfigs(cmd.Context(), &o, cmd.InOrStdin())
		},
	}
	o.register(cmd, "table", "json", "yaml")
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "`FILE` with templates; - is standard input (required)")
	f.BoolVar(&o.dry, "dry-run", false, "print what would change and change nothing")
	f.BoolVar(&o.replace, "replace-draft", false, "replace the draft of a person with the content of the file")
	return cmd
}

// applyConfigs prints what the templates of a file change, and then changes it.
func (env *cliEnv) applyConfigs(ctx context.Context, o *configApplyOptions, in io.Reader) error {
	if err := o.output.check(); err != nil {
		return err
	}
	requests, err := o.requests(in)
	if err != nil {
		return env.printFaults(err)
	}

	return env.withClient(func(c *client.Client) error {
		only := 0
		for i := range requests {
			if requests[i].Biz != 0 {
				continue
			}
			if only == 0 {
				if only, err = onlyBusiness(ctx, c); err != nil {
					return err
				}
			}
			requests[i].Biz = only
		}

		// Make a plan of all of them: a fault in the last one changes nothing.
		plan, err := planEach(ctx, c, requests)
		if err != nil {
			return env.printFaults(err)
		}
		if !o.output.structured() {
			if err := env.printConfigPlan(ctx, c, requests, plan); err != nil {
				return err
			}
		}
		for _, p := range plan {
			for _, w := range p.Warnings {
				env.remark("warning: %s: %s", printable(p.Name), printable(env.chinese.Message(w)))
			}
		}

		// Carry it out.
		done := plan
		if !o.dry {
			if done, err = applyEach(ctx, c, requests); err != nil {
				return env.printFaults(err)
			}
		}
		if o.output.structured() {
			return o.output.write(env.out, done)
		}
		return env.sayConfigsApplied(o.dry, done)
	})
}

// requests reads the documents of the file.
func (o *configApplyOptions) requests(in io.Reader) ([]client.ConfigRequest, error) {
	if o.file == "" {
		return nil, usage("give the templates with -f FILE; -f - reads standard input")
	}
	if o.file != "-" {
		if _, err := os.Stat(o.file); err != nil {
			return nil, usage("cannot read the templates: %w", err)
		}
	}
	text, err := readDefinitions(o.file, in)
	if err != nil {
		return nil, err
	}
	folder := "."
	if o.file != "-" {
		folder = filepath.Dir(o.file)
	}

	return o.documents(text, folder)
}

// documents are the requests for the documents in a text. Of documents that are YAML, all faults are named at once.
func (o *configApplyOptions) documents(text []byte, folder string) (requests []client.ConfigRequest, err error) {
	type name struct {
		biz  int
		name string
	}
	var faults templateFaults
	seen := map[name]bool{}
	for dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()); ; {
		var d configDocument
		switch err := dec.Decode(&d); {
		case errors.Is(err, io.EOF) && len(faults) == 1:
			return nil, usage("template %q in %s: %w", printable(faults[0].name), fileName(o.file), faults[0].err)
		case errors.Is(err, io.EOF) && len(faults) > 0:
			return nil, faults.join()
		case errors.Is(err, io.EOF) && len(requests) == 0:
			return nil, usage("there is no template in %s", fileName(o.file))
		case errors.Is(err, io.EOF):
			return requests, nil
		case err != nil:
			return nil, usage("cannot read the templates in %s: %w", fileName(o.file), err)
		}

		r, err := d.request(folder, o)
		if err == nil && seen[name{r.Biz, r.Name}] {
			err = errors.New("it is there twice")
		}
		if err != nil {
			faults = append(faults, templateFault{d.Name, err})
		}
		seen[name{r.Biz, r.Name}] = true
		requests = append(requests, r)
	}
}

// request is the request for a document. The server checks its fields.
func (d *configDocument) request(folder string, o *configApplyOptions) (client.ConfigRequest, error) {
	r := client.ConfigRequest{Biz: d.Biz, Name: d.Name, FileName: d.FileName, Folder: d.Folder, Owner: d.Owner, Group: d.Group, Mode: string(d.Mode),
		LineEnds: d.LineEnds, Description: d.Description, ReplaceDraft: o.replace}
	switch {
	case d.Biz == 0:
		r.Biz = o.biz
	case o.biz != 0 && d.Biz != o.biz:
		return r, fmt.Errorf("it is of business %d, and --biz is %d", d.Biz, o.biz)
	}
	if d.Bind != nil {
		r.Bind = &client.ConfigBind{Processes: d.Bind.Processes, Templates: d.Bind.Templates}
	}

	switch {
	case (d.Content != nil) == (d.ContentFile != ""):
		return r, errors.New("it needs either content or content_file")
	case d.Content != nil:
		r.Content = *d.Content
		return r, nil
	}
	content, err := readTemplate(folder, d.ContentFile)
	r.Content = content
	return r, err
}

// readTemplate reads the content of a template. Links out of the folder are not followed: a document from elsewhere must not send
// other files of the caller to a server.
func readTemplate(folder, name string) (string, error) {
	f, err := os.OpenInRoot(folder, name)
	if err != nil {
		return "", fmt.Errorf("cannot read content_file: %w", err)
	}
	defer f.Close()

	b, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read content_file: %w", err)
	case len(b) > maxTemplate:
		return "", fmt.Errorf("content_file %s has more than %d bytes", printable(name), maxTemplate)
	case !utf8.Valid(b):
		return "", fmt.Errorf("content_file %s is no text in UTF-8", printable(name))
	}
	return string(b), nil
}

// appliedConfig is what a document changed.
type appliedConfig struct {
	Biz  int    `json:"biz"`
	Name string `json:"name"`
	client.ConfigApplied
}

// printConfigPlan prints what changes, with the lines of contents that differ.
func (env *cliEnv) printConfigPlan(ctx context.Context, c *client.Client, requests []client.ConfigRequest, plan []appliedConfig) error {
	for i, p := range plan {
		sign := "~"
		switch {
		case p.New:
			sign = "+"
		case len(p.Changes) == 0:
			sign = "="
		}
		if err := checkWrite(fmt.Fprintln(env.out, sign, printable(p.Name))); err != nil {
			return err
		}
		if sign != "~" {
			continue
		}
		for _, change := range p.Changes {
			if err := checkWrite(fmt.Fprintln(env.out, "    "+printable(env.chinese.Message(change)))); err != nil {
				return err
			}
		}

		now, err := c.ConfigTemplate(ctx, p.Biz, p.Template)
		if err != nil {
			return err
		}
		if now.Content != requests[i].Content {
			if err := env.printLog(lineDiff(now.Content, requests[i].Content)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sayConfigsApplied prints how many templates were changed.
func (env *cliEnv) sayConfigsApplied(dry bool, done []appliedConfig) error {
	added, changed := 0, 0
	for _, p := range done {
		switch {
		case p.New:
			added++
		case len(p.Changes) > 0:
			changed++
		}
	}
	switch {
	case added+changed == 0:
		return env.say("nothing to change: %d templates are as the file says\n", len(done))
	case dry:
		return env.say("dry run: nothing was changed\n")
	}
	return env.say("applied: %d added, %d changed; write them to hosts with: gozzard config release\n", added, changed)
}
