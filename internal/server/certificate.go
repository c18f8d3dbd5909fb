package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certFiles is a certificate in files that another program renews. It is read again when its file changes. While the
// file is bad, the last good certificate is used.
type certFiles struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	stamp  time.Time
	loaded *tls.Certificate
}

func (f *certFiles) get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.cert)
	if err == nil && f.loaded != nil && st.ModTime().Equal(f.stamp) {
		return f.loaded, nil
	}

	pair, loadErr := tls.LoadX509KeyPair(f.cert, f.key)
	if err := errors.Join(err, loadErr); err != nil {
		if f.loaded == nil {
			return nil, fmt.Errorf("cannot read the certificate of the API: %w", err)
		}
		f.log.Error("cannot read the certificate of the API again, the last one is used", "err", err)
		return f.loaded, nil
	}

	f.loaded, f.stamp = &pair, st.ModTime()
	return f.loaded, nil
}
