package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
)

// TestAdviceAboutAuthority: only the error of a connection to a server of Gozzard advises to give its authority. That of another
// server, such as a database, has the same cause.
func TestAdviceAboutAuthority(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	c, err := client.New(srv.URL, client.Credentials{AppCode: "a", AppSecret: "b"})
	if err != nil {
		t.Fatal(err)
	}

	_, err = c.Hosts(context.Background(), 0, 1)
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Fatalf("the connection fails otherwise: %v", err)
	}
	if advice := adviceText(nil, err); !strings.Contains(advice, "--ca-file ca.pem") {
		t.Errorf("%v: %q", err, advice)
	}

	other := fmt.Errorf("cannot connect to the database: %w", x509.UnknownAuthorityError{})
	if advice := adviceText(nil, other); advice != "" {
		t.Errorf("%v: %q", other, advice)
	}
}
