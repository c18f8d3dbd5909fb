//go:build linux

package faults_test

import (
	"flag"
	"os"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var scale = flag.Int("faults.scale", 1, "multiplies the number of kills and operations")

func TestMain(m *testing.M) {
	if path := os.Getenv(hogMark); path != "" {
		fillOutputDisk(path)
	}
	flag.Parse()
	ft.Main(m)
}
