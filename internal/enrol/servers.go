package enrol

import (
	"errors"
	"net"
	"net/url"
	"slices"

	"github.com/gozzard/gozzard"
)

// serverURLs parses the URLs of servers and leaves out those that come again.
func serverURLs(list []string) (urls []*url.URL, err error) {
	for _, s := range list {
		u, err := serverURL(s)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(urls, func(known *url.URL) bool { return known.Host == u.Host }) {
			urls = append(urls, u)
		}
	}
	return urls, nil
}

// firstOf asks one server after the other, as long as next says that the error of one is a reason to ask the next.
func firstOf[T any](servers []*url.URL, next func(error) bool, ask func(*url.URL) (T, error)) (out T, err error) {
	for _, s := range servers {
		if out, err = ask(s); err == nil || !next(err) {
			return out, err
		}
	}
	return out, err
}

// notReached says that nothing was sent: a token that may have been used is not sent to another server.
func notReached(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// notAnswered says that there was no answer of a server. A refusal counts, because all servers have the same record.
func notAnswered(err error) bool {
	var refusal *gozzard.Error
	return !errors.As(err, &refusal)
}
