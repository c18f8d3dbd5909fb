package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configFiles are the shipped configuration files, by the words of their commands. The text is their beginning.
var configFiles = map[string]struct{ file, text string }{
	"server": {"server.yaml", `# Settings of gozzard-server.service. As shipped, the server listens on this machine only.
# To serve other hosts, remove the # before these two lines, then run: systemctl restart gozzard-server
# They are the address of the API and the address that agents connect to (default: 127.0.0.1:8080 and
# 127.0.0.1:4230).
# 中文说明：在中文环境下执行 gozzard server --help，或打开服务端的 /docs/zh/configuration-reference
#listen: 0.0.0.0:8443
#agent-listen: 0.0.0.0:4230
`},
	"agent": {"agent.yaml", `# Settings of the units of the agent. As shipped, the agent belongs to the fleet that this host has joined
# (gozzard agent join). A host that has joined none belongs to the server on the same machine, if there is one.
# Change a line, then run: systemctl restart gozzard-agent. Processes keep running meanwhile.
# 中文说明：在中文环境下执行 gozzard agent --help，或打开服务端的 /docs/zh/configuration-reference
`},
	"relay": {"relay.yaml", `# Settings of gozzard-relay.service. As shipped, the relay listens on all addresses of this machine.
# Change a line, then run: systemctl restart gozzard-relay. Hosts connect again by themselves.
# 中文说明：在中文环境下执行 gozzard relay --help，或打开服务端的 /docs/zh/configuration-reference
`},
}

// TestReferenceConfigFiles compares the shipped configuration files with the flags; -update writes them. Every setting is
// there as a comment with its default, so that the file changes nothing.
func TestReferenceConfigFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the files are for Linux")
	}
	for name, c := range configFiles {
		cmd, _, err := newRoot().Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		want := []byte(c.text + configText(cmd, c.text))
		path := filepath.Join("..", "..", "packaging", c.file)
		if *writePages {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("packaging/%s differs from the program at line %d; write it with: "+
				"go test ./cmd/gozzard -run Reference -update", c.file, firstDifference(got, want))
		}
	}
}

// TestConfigFilesWork: the shipped files set nothing, and with every comment sign removed they set every flag to its
// default.
func TestConfigFilesWork(t *testing.T) {
	setting := regexp.MustCompile(`(?m)^#([a-z-]+:)`)
	for name, c := range configFiles {
		shipped, err := os.ReadFile(filepath.Join("..", "..", "packaging", c.file))
		if err != nil {
			t.Fatal(err)
		}
		body := strings.TrimPrefix(string(shipped), c.text)
		for what, text := range map[string]string{"as shipped": string(shipped),
			"with every line": setting.ReplaceAllString(body, "$1")} {
			cmd, _, err := newRoot().Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags([]string{"--config", path}); err != nil {
				t.Fatal(err)
			}
			if err := applySettings(cmd); err != nil {
				t.Errorf("%s %s: %v", c.file, what, err)
				continue
			}

			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "config" && f.Value.String() != f.DefValue {
					t.Errorf("%s %s: %s is %q, not %q", c.file, what, f.Name, f.Value, f.DefValue)
				}
				if f.Changed != (what == "with every line" && isSetting(f) && !inText(c.text, f.Name) && f.DefValue != "[]" && f.DefValue != "") &&
					f.Name != "config" && f.DefValue != "" {
					t.Errorf("%s %s: %s is set: %v", c.file, what, f.Name, f.Changed)
				}
			})
		}
	}
}

// TestConfigFilesHaveSettingsOnce: every setting is in its file, and once only. A person that changes the first of two
// lines does not see that the second one counts, or that the file is rejected.
func TestConfigFilesHaveSettingsOnce(t *testing.T) {
	setting := regexp.MustCompile(`(?m)^#?([a-z][a-z-]*):(?: |$)`)
	for name, c := range configFiles {
		shipped, err := os.ReadFile(filepath.Join("..", "..", "packaging", c.file))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, m := range setting.FindAllSubmatch(shipped, -1) {
			count[string(m[1])]++
		}

		cmd, _, err := newRoot().Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if n := count[f.Name]; isSetting(f) && n != 1 {
				t.Errorf("packaging/%s has %s %d times", c.file, f.Name, n)
			}
		})
	}
}

// isSetting reports whether a flag belongs into a configuration file.
func isSetting(f *pflag.Flag) bool {
	return !f.Hidden && !slices.Contains([]string{"help", "config", "data"}, f.Name)
}

// inText reports whether the beginning of a file has a setting.
func inText(text, name string) bool { return strings.Contains(text, "\n#"+name+": ") }

// configText is all settings of a command as comments, without those that the beginning of the file has.
func configText(cmd *cobra.Command, beginning string) string {
	var b strings.Builder
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) || inText(beginning, f.Name) {
			return
		}
		_, meaning := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "\n%s#%s: %s\n", wrapComment(meaning), f.Name, yamlDefault(f))
	})
	return b.String()
}

// yamlDefault is the default of a flag as YAML.
func yamlDefault(f *pflag.Flag) string {
	list := slices.Contains([]string{"stringSlice", "intSlice", "stringToInt", "CIDR"}, f.Value.Type())
	switch {
	case list && f.DefValue == "":
		return "[]"
	case f.DefValue == "":
		return `""`
	}
	return f.DefValue
}

// wrapComment writes a text as lines of comments.
func wrapComment(text string) string {
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 100 {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}
