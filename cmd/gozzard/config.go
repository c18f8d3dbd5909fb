package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/internal/suggest"
)

// applySettings sets the flags of a command that the caller did not give: from the environment (--agent-listen is
// GOZZARD_AGENT_LISTEN), then from the YAML file that --config names (agent-listen: …). A key of the file that is
// not a flag is an error, so that a misspelt setting is noticed.
func applySettings(cmd *cobra.Command) error {
	path, _ := cmd.Flags().GetString("config")
	if v, ok := os.LookupEnv("GOZZARD_CONFIG"); ok && path == "" {
		path = v
	}
	return applySettingsOf(cmd, path, os.LookupEnv)
}

// applySettingsOf sets the flags from an environment and from a file; "" is none.
func applySettingsOf(cmd *cobra.Command, path string, lookup func(string) (string, bool)) error {
	file, err := readSettings(path)
	if err != nil {
		return err
	}
	if err := file.checkKeys(cmd); err != nil {
		return err
	}

	// Set what the command line did not set. The environment comes before the file.
	flags := cmd.Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || f.Name == "help" || f.Name == "config" {
			return
		}

		env := "GOZZARD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := lookup(env); ok {
			if e := flags.Set(f.Name, v); e != nil {
				err = fmt.Errorf("environment %s: %w", env, e)
			}
			return
		}

		if v, ok := file.values[f.Name]; ok {
			if e := setFromFile(flags, f.Name, v); e != nil {
				err = fmt.Errorf("configuration %s, line %d: %s: %w", path, file.lines[f.Name], f.Name, e)
			}
		}
	})

	return err
}

// settingsFile is a file of settings.
type settingsFile struct {
	path   string
	values map[string]any
	lines  map[string]int // of the keys
}

// readSettings reads a file of settings; "" is none.
func readSettings(path string) (*settingsFile, error) {
	f := &settingsFile{path: path, values: map[string]any{}, lines: map[string]int{}}
	if path == "" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	if err := yaml.Unmarshal(b, &f.values); err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", path, err)
	}

	tree, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", path, err)
	}
	for _, doc := range tree.Docs {
		if m, ok := doc.Body.(ast.MapNode); ok {
			for i := m.MapRange(); i.Next(); {
				t := i.Key().GetToken()
				f.lines[t.Value] = t.Position.Line
			}
		}
	}
	return f, nil
}

// checkKeys rejects what is no setting of a command. Of several, the first one is named.
func (f *settingsFile) checkKeys(cmd *cobra.Command) error {
	wrong, known := "", []string(nil)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
	for key := range f.values {
		isSetting := slices.Contains(known, key) && key != "config" && key != "help"
		if !isSetting && (wrong == "" || f.lines[key] < f.lines[wrong]) {
			wrong = key
		}
	}

	if wrong == "" {
		return nil
	}
	why := fmt.Errorf("%q is not a setting of %q (see --help)", wrong, cmd.CommandPath())
	if near := suggest.Nearest(wrong, known); near != "" && near != wrong {
		why = fmt.Errorf("%q is not a setting of %q, did you mean %q?", wrong, cmd.CommandPath(), near)
	}
	return fmt.Errorf("configuration %s, line %d: %w", f.path, f.lines[wrong], why)
}

// setFromFile sets a flag to a value of the file. The items of a list are set one after the other.
func setFromFile(flags *pflag.FlagSet, name string, v any) error {
	list, ok := v.([]any)
	if !ok {
		return flags.Set(name, fmt.Sprint(v))
	}
	for _, x := range list {
		if err := flags.Set(name, fmt.Sprint(x)); err != nil {
			return err
		}
	}
	return nil
}
