//go:build linux

package fleettest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// typeCheck compares dashboards, by the names of their files, with the types that Grafana publishes, and returns the differences.
func typeCheck(t *testing.T, dashboards map[string]string) string {
	t.Helper()
	modules, err := filepath.Abs("../../web/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	compiler := filepath.Join(modules, ".bin/tsc")
	if _, err := os.Stat(compiler); err != nil {
		t.Skip("needs the packages of web/ from npm: run make web")
	}
	types, err := os.ReadFile("testdata/grafana.ts")
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	files := map[string]string{"grafana.ts": string(types)}
	for name, dashboard := range dashboards {
		files[name+".ts"] = "import type { Ours } from \"./grafana\";\nexport const it: Ours = " + dashboard
	}
	args := []string{"--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatalf("tsc: %v", err)
	}
	return string(out)
}

// TestDashboardsFitGrafana: every field of the dashboards is one that the schema of Grafana has, with a value that it may have.
func TestDashboardsFitGrafana(t *testing.T) {
	shipped := map[string]string{}
	for _, name := range []string{"gozzard-fleet", "gozzard-process", "gozzard-servers"} {
		b, err := os.ReadFile("../../examples/grafana/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		shipped[name] = string(b)
	}
	if faults := typeCheck(t, shipped); faults != "" {
		t.Fatal(faults)
	}

	// The check finds each of these faults.
	faulty := map[string]string{}
	for name, change := range map[string][2]string{
		"unknown-field":    {`"schemaVersion": `, `"schemaversion": 1, "schemaVersion": `},
		"unknown-panel":    {`"type": "timeseries"`, `"type": "graph"`},
		"unknown-option":   {`"options": {}`, `"options": {"legends": {}}`},
		"value-of-option":  {`"options": {}`, `"options": {"legend": {"displayMode": "wide"}}`},
		"unit":             {`"unit": "short"`, `"unit": 3`},
		"position":         {`"x": 0`, `"x": "0"`},
		"refresh":          {`"refresh": 2`, `"refresh": 9`},
		"query-of-a-panel": {`"legendFormat"`, `"legend"`},
		"source":           {`"type": "prometheus"`, `"type": "loki"`},
		"interval":         {`"from": "now-3h"`, `"from": 3`},
	} {
		changed := strings.Replace(shipped["gozzard-fleet"], change[0], change[1], 1)
		if changed == shipped["gozzard-fleet"] {
			t.Fatalf("%s: the dashboard has no %s", name, change[0])
		}
		faulty[name] = changed
	}
	found := typeCheck(t, faulty)
	for name := range faulty {
		if !strings.Contains(found, name+".ts(") {
			t.Errorf("%s is not found:\n%s", name, found)
		}
	}
}
