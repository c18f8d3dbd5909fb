package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// applySettings sets the flags of a command that the caller did not give: from the environment (--agent-listen is
// GOZZARD_AGENT_LISTEN), then from the YAML file that --config names (agent-listen: …). A key of the file that is
// not a flag is an error, so that a misspelt setting is noticed.
func applySettings(cmd *cobra.Command) error {
	// Read the file.
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

	// Reject unknown keys.
	for key := range file {
		if f := flags.Lookup(key); f == nil || key == "config" || key == "help" {
			return fmt.Errorf("configuration %s: %q is not a setting of %q (see --help)", path, key, cmd.CommandPath())
		}
	}

	// Set what the command line did not set. The environment comes before the file.
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
