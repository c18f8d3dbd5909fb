package mako_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/gozzard/gozzard/internal/mako"
)

// broken is a value that fails as a fault of the program does.
type broken struct{ starlark.NoneType }

func (broken) String() string { panic("broken") }

// TestTD30FaultOfTheProgram: a template that meets a fault of the program is an error of that template. It does not end the server.
func TestTD30FaultOfTheProgram(t *testing.T) {
	for _, text := range []string{"${x}", "a ${x} ${1 + 1}", "${'%s' % x}"} {
		template, err := mako.Compile(text, mako.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		out, err := template.Render(context.Background(), &mako.Context{Values: map[string]mako.Value{"x": broken{}}}, mako.DefaultLimits())
		var fault *mako.RenderError
		if !errors.As(err, &fault) || !strings.Contains(fault.Message, "fault of the program") || out != "" {
			t.Errorf("%s: %q, %v", text, out, err)
		}
	}
}

// TestPercentWithoutValues: keys in a format need a dict, also where there are no values at all.
func TestPercentWithoutValues(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for text, want := range map[string]string{
		"${'%(a)s' % ()}": "format requires a mapping", "${'%(a)s' % []}": "list indices must be integers or slices, not str",
		"${'%(a)s' % 1}": "format requires a mapping", "${'%s %(a)s' % (1,)}": "format requires a mapping",
		"${'é%s %y' % (1, 2)}": "unsupported format character 'y' (0x79) at index 5",
		"${'%c' % (2**70,)}":   "%c arg not in range(0x110000)", "${'{:c}'.format(2**70)}": "Python int too large to convert to C long",
		"${chr(2**70)}": "Python int too large to convert to C int", "${chr(-1)}": "chr() arg not in range(0x110000)",
	} {
		if _, err := render(text, with); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
