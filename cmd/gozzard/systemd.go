package main

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// notifySocket names the socket of systemd in the environment of a service with Type=notify.
const notifySocket = "NOTIFY_SOCKET"

// sayReady says to systemd that the service answers, if systemd waits for that. What is started next can then rely on it.
// Programs that this one starts do not get the socket. A program that takes this process over before gets it, and says it.
func sayReady() error {
	path := os.Getenv(notifySocket)
	if path == "" {
		return nil
	}
	if err := os.Unsetenv(notifySocket); err != nil {
		return fmt.Errorf("cannot remove %s from the environment: %w", notifySocket, err)
	}

	c, err := net.Dial("unixgram", path)
	if err != nil {
		return fmt.Errorf("cannot reach systemd: %w", err)
	}
	_, err = c.Write([]byte("READY=1"))
	return errors.Join(err, c.Close())
}
