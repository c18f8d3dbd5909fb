package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// panicEnv names, in the environment of this test binary, the case of panics that a child plays.
const panicEnv = "GOZZARD_LIVE_PANIC"

// panics are ways in which the code under the lock of an index can panic, and the function that the trace has to name.
var panics = map[string]struct {
	run  func(x *fleet.Index)
	in   string
	text string
}{
	"callback of Look": {func(x *fleet.Index) {
		keys := []gozzard.Key{{Namespace: "ns", Name: "p0"}}
		x.Look(agentName(0), addr(0, 0), keys, func(int, fleet.Brief) { panic("bad caller") })
	}, "(*Index).Look", "bad caller"},
	"callback of OnLeftOut": {func(x *fleet.Index) {
		x.OnLeftOut(func(gozzard.AgentID, int, int) { panic("bad listener") })
		x.Apply(agentName(0), []gozzard.Status{{}}, nil)
	}, "(*Index).Apply", "bad listener"},
	"search of all hosts": {func(x *fleet.Index) {
		x.Break()
		x.Find(all, fleet.Filter{Names: []string{"p*"}}, 0, 10)
	}, "(*query).scan", "index out of range"},
	"search of one host": {func(x *fleet.Index) {
		x.Break()
		x.Find(all, fleet.Filter{Agents: []gozzard.AgentID{agentName(0)}}, 0, 10)
	}, "(*query).byHost", "index out of range"},
	"list of hosts": {func(x *fleet.Index) {
		x.Break()
		x.Hosts(all)
	}, "(*Index).Hosts", "nil pointer"},
}

// TestPanicUnderLockEndsProgram: net/http recovers panics of handlers. A panic while the lock of the index is held must
// end the program all the same. Otherwise it would continue with a lock that is never released.
func TestPanicUnderLockEndsProgram(t *testing.T) {
	if name := os.Getenv(panicEnv); name != "" {
		servePanic(panics[name].run)
		return
	}

	for name, c := range panics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPanicUnderLockEndsProgram$")
			cmd.Env = append(os.Environ(), panicEnv+"="+name)
			out, err := cmd.CombinedOutput()

			if ctx.Err() != nil {
				t.Fatalf("the program hangs:\n%s", out)
			}
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Fatalf("got %v, want exit status 2:\n%s", err, out)
			}

			for _, want := range []string{"panic while shared state was locked: ", c.text, c.in} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// servePanic plays a server whose first request panics, and whose second needs the lock for writing.
func servePanic(run func(*fleet.Index)) {
	x := fleet.New()
	for i := range 3 {
		x.PutHost(hostAt(agentName(i), addr(0, i)))
		x.Apply(agentName(i), []gozzard.Status{status("ns", fmt.Sprintf("p%d", i))}, nil)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { run(x) })

	mux.HandleFunc("/next", func(w http.ResponseWriter, _ *http.Request) {
		x.PutHost(hostAt(agentName(9), addr(0, 9)))
		io.WriteString(w, "answered")
	})

	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()

	for _, path := range []string{"/panic", "/next"} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			fmt.Println(path, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println(path, res.Status, string(body))
	}
}

// TestUnlockIsDeferred: a lock that is released without defer does not notice a panic.
func TestUnlockIsDeferred(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	deferred := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.DeferStmt:
				deferred++
				return false
			case *ast.SelectorExpr:
				if n.Sel.Name == "Unlock" || n.Sel.Name == "RUnlock" {
					t.Errorf("%s: %s without defer", set.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}

	if deferred == 0 {
		t.Error("no defer was found")
	}
}
