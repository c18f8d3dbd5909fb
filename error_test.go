package gozzard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/gozzard/gozzard"
)

func TestErrorKinds(t *testing.T) {
	err := fmt.Errorf("cannot accept: %w", &gozzard.Error{Kind: gozzard.ErrStorageFull, Message: "no room",
		Cause: fs.ErrPermission})
	if got := gozzard.KindOf(err); got != gozzard.ErrStorageFull {
		t.Errorf("kind %v", got)
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Error("the cause is lost")
	}
	if got := gozzard.KindOf(errors.New("x")); got != gozzard.ErrInternal {
		t.Errorf("an error without a kind is %v", got)
	}
	if got := gozzard.KindOf(gozzard.Errorf(gozzard.ErrConflict, "%d", 1)); got != gozzard.ErrConflict {
		t.Errorf("kind %v", got)
	}
}

func TestErrorText(t *testing.T) {
	faults := []gozzard.Fault{{Path: "hosts[3].ip", Text: "not an address"}, {Text: "too many"}}
	for _, tt := range []struct {
		err  *gozzard.Error
		want string
	}{
		{&gozzard.Error{Message: "request refused", Faults: faults},
			"request refused; hosts[3].ip: not an address; too many"},
		{&gozzard.Error{Faults: faults[:1]}, "hosts[3].ip: not an address"},
		{&gozzard.Error{Message: "no room", Cause: errors.New("disk full")}, "no room: disk full"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
