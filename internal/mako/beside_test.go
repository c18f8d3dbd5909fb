//go:build mako

package mako_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
)

// original is a Python program that renders one template on each line, with Mako.
const original = `
import json, re, resource, sys, warnings
import mako
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
warnings.simplefilter("ignore")
from mako.template import Template
print(json.dumps({"version": mako.__version__}), flush=True)
for line in sys.stdin:
    text = json.loads(line)
    try:
        out = Template(text).render(InstID=3, bk_set_name="管控平台", name="web.api", empty="")
        print(json.dumps({"out": re.sub(" at 0x[0-9a-f]+", "", out)}), flush=True)
    except BaseException as e:
        print(json.dumps({"error": type(e).__name__ + ": " + str(e)[:200]}), flush=True)
`

// TestBesideMako renders random templates with Mako of Debian too, for as long as GOZZARD_MAKO_TIME says: the output must be
// the same, and what Mako cannot render must be an error here. What this package says it does not support is counted apart.
// make fuzz-mako runs it.
func TestBesideMako(t *testing.T) {
	spend, err := time.ParseDuration(os.Getenv("GOZZARD_MAKO_TIME"))
	if err != nil {
		t.Fatal("GOZZARD_MAKO_TIME is not set: run make fuzz-mako")
	}
	ask, version := startMako(t)

	for text, want := range foundBesideMako {
		if out, fault := ask(text); out != want {
			t.Errorf("%q: Mako gives %q %s, and not %q", text, out, fault, want)
		}
	}

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	with := &mako.Context{Values: map[string]mako.Value{"InstID": mako.Int(3), "bk_set_name": mako.String("管控平台"),
		"name": mako.String("web.api"), "empty": mako.String("")}, Now: time.Now(), Random: random}
	compared, failed, limited := 0, 0, 0
	faults := map[string]int{}
	var differences []string
	unsupported := map[string]int{}
	for begin := time.Now(); time.Since(begin) < spend && len(differences) < 100; compared++ {
		text := (&writer{random: random, escapes: strings.HasPrefix(version, "1.2")}).template()
		want, fault := ask(text)
		got, err := render(text, with)
		switch {
		case fault != "" && err != nil:
			failed++
			class, message, _ := strings.Cut(fault, ": ")
			faults[class]++
			if e := (*mako.RenderError)(nil); errors.As(err, &e) && class[0] != 'S' && !atLimit(err) && !strings.HasSuffix(e.Message, " supported") &&
				message != fmt.Sprintf("%.200s", e.Message) {
				differences = append(differences, fmt.Sprintf("seed %d: %q\n got error %q\nwant error %q", seed, text, e.Message, message))
			}
		case err != nil && atLimit(err):
			limited++
		case err != nil && strings.Contains(err.Error(), "not supported"):
			_, why, _ := strings.Cut(err.Error(), "}: ")
			unsupported[why]++
		case strings.Contains(got, "not supported") && got != want:
			unsupported["(caught)"]++
		case fault != "" && err == nil:
			differences = append(differences, fmt.Sprintf("seed %d: %q gives %q; Mako: %s", seed, text, got, fault))
		case err != nil || got != want:
			differences = append(differences, fmt.Sprintf("seed %d: %q\n got %q %v\nwant %q", seed, text, got, err, want))
		}
	}
	slices.SortFunc(differences, func(a, b string) int { return len(a) - len(b) })
	for _, d := range differences[:min(len(differences), 20)] { // the shortest say most
		t.Error(d)
	}
	t.Logf("Mako %s, seed %d: %d templates compared, %d different; %d were errors in both, %d reached a limit here", version, seed, compared,
		len(differences), failed, limited)
	t.Log("the errors:", faults)
	for why, n := range unsupported {
		t.Logf("not supported, %d times: %.200s", n, why)
	}
}

// atLimit reports whether an error is that of a limit.
func atLimit(err error) bool {
	return slices.ContainsFunc([]string{"too much memory", "too large", "too long", "too many steps", "writes more than"},
		func(text string) bool { return strings.HasSuffix(err.Error(), text) })
}

// startMako starts the original and gives a function that asks it, and its version.
func startMako(t *testing.T) (ask func(string) (out, fault string), version string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", original)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})

	lines := bufio.NewReader(out)
	read := func() map[string]string {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("Mako ended: %v", err)
		}
		var answer map[string]string
		if err := json.Unmarshal(line, &answer); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return answer
	}
	version = read()["version"]
	return func(text string) (string, string) {
		line, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, string(line)+"\n"); err != nil {
			t.Fatal(err)
		}
		answer := read()
		return answer["out"], answer["error"]
	}, version
}
