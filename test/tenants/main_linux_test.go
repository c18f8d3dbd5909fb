package tenants_test

import (
	"testing"

	"go.uber.org/goleak"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(ft.Finish)) }
