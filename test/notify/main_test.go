package notify_test

import (
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestMain(m *testing.M) { ft.AsShipped(); ft.Main(m) }
