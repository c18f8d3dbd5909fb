package blueking_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard/internal/blueking"
)

func TestLoginServiceIsAskedOnceForMany(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-release
		fmt.Fprint(w, `{"result":true,"data":{"bk_username":"alice"}}`)
	}))

	t.Cleanup(srv.Close)
	s, err := blueking.NewLoginService(srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if user, err := s.Verify(t.Context(), "token"); user != "alice" || err != nil {
				t.Errorf("%q, %v", user, err)
			}
		})
	}

	close(release)
	wg.Wait()

	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestLoginServiceAddress(t *testing.T) {
	for _, address := range []string{"", "paas/login", "ftp://paas/", "http://u:p@paas/"} {
		if _, err := blueking.NewLoginService(address, nil); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}
