package gozzard

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// ServerAddress says where agents find one server of the installation.
type ServerAddress struct {
	Agents string `json:"agents"`        // host:port that agents connect to
	API    string `json:"api,omitempty"` // https://host:port; "" means that hosts cannot use the API of this server
}

// Validate checks both addresses.
func (a ServerAddress) Validate() error {
	if err := validateHostPort(a.Agents); err != nil {
		return err
	}
	if a.API == "" {
		return nil
	}

	u, err := url.Parse(a.API)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" || u.Fragment != "" || !IsPlainLine(a.API) {
		return fmt.Errorf("%q is not of the form https://host:port", a.API)
	}
	return nil
}

func validateHostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || n == 0 || host == "" || len(s) > 512 || !IsPlainLine(s) {
		return fmt.Errorf("%q is not of the form host:port", s)
	}
	return nil
}
