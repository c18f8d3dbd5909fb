package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// layer completes the flags of a command that were not given: from the environment (--agent-listen is
// GOZZARD_AGENT_LISTEN), then from the YAML file named by --config (agent-listen: …). A key of the file that is no
// flag is an error, so a misspelt setting is noticed.
func layer(cmd *cobra.Command) error {
	flags := cmd.Flags()
	path, _ := flags.GetString("config")
	if v, ok := os.LookupEnv("GOZZARD_CONFIG"); ok && path == "" {
		path = v
	}

	file := map[string]any{}

	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read the configuration: %w", err)
		}
		if err := yaml.Unmarshal(b, &file); err != nil {
			return fmt.Errorf("cannot read the configuration %s: %w", path, err)
		}
	}

	for key := range file {
		if f := flags.Lookup(key); f == nil || key == "config" || key == "help" {
			return fmt.Errorf("configuration %s: %q is not a setting of %q (see --help)", path, key, cmd.CommandPath())
		}
	}

	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || f.Name == "help" || f.Name == "config" {
			return
		}

		env := "GOZZARD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(env); ok {
			if e := flags.Set(f.Name, v); e != nil {
				err = fmt.Errorf("environment %s: %w", env, e)
			}
			return
		}

		if v, ok := file[f.Name]; ok {
			if e := setFromFile(flags, f.Name, v); e != nil {
				err = fmt.Errorf("configuration %s: %s: %w", path, f.Name, e)
			}
		}
	})

	return err
}

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
