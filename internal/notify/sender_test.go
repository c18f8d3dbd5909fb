package notify

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestDeliveredAgain: the log says that alerts are delivered again when the receiver took one, not when one was given up.
func TestDeliveredAgain(t *testing.T) {
	var out bytes.Buffer
	s := &sender{e: &Engine{o: Options{Log: slog.New(slog.NewTextHandler(&out, nil))}}}
	s.log(0, errors.New("400 Bad Request"))
	s.log(0, nil) // the message is a dead letter
	if strings.Contains(out.String(), "delivered again") {
		t.Errorf("nothing was delivered: %s", out.String())
	}
	s.log(1, nil)
	if !strings.Contains(out.String(), "alerts are delivered again") {
		t.Errorf("the log has %s", out.String())
	}
}
