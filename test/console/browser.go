//go:build linux

package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/gozzard/gozzard/test/fleettest"
)

// Patience is how long a page may take for anything. Tests wait for conditions, so a fast machine does not notice it.
const Patience = time.Minute

// EvilHost is a name that points to this machine in the browser, as that of an attacker does (DNS rebinding).
const EvilHost = "evil.test"

// chromium starts the one browser of a test process. Tests share it, each with a browser context of its own: starting a
// browser takes a second, a context a few milliseconds.
var chromium = sync.OnceValues(startChromium)

// stopChromium ends the browser; nil while there is none.
var stopChromium context.CancelFunc

func startChromium() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "gozzard-chromium-")
	if err != nil {
		return nil, err
	}
	fleettest.RemoveAtEnd(profile)

	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("headless", "new"), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-dev-shm-usage", true), // /dev/shm of a container is small
		chromedp.Flag("no-proxy-server", true),       // every request goes to the server under test
		chromedp.Flag("host-resolver-rules", "MAP "+EvilHost+" 127.0.0.1"),
		chromedp.Flag("disable-popup-blocking", true), // pages of attackers open windows
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("password-store", "basic"),
		// A tab in the background, which every tab but one is, would get its timers and frames late.
		chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("mute-audio", true),
		chromedp.Flag("lang", "en-US"), chromedp.Env("LANGUAGE=en_US", "LANG=C.UTF-8"),
		chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(Patience),
	}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work as root
	}

	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		stop()
		stopAlloc()
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	stopChromium = func() {
		stop()
		stopAlloc()
	}
	return ctx, nil
}

// Main runs tests against the program without the race detector, and ends the browser afterwards. The race detector
// would make every page slow and find what the tests of the server find. TestMain calls it.
func Main(m *testing.M) {
	fleettest.AsShipped()
	code := m.Run()
	if stopChromium != nil {
		stopChromium()
	}
	fleettest.Finish(code)
}

// NeedBrowser skips a test on a machine without Chromium. In CI nothing may be skipped.
func NeedBrowser(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs Debian's package chromium")
	}
}

// need skips a test without a browser, or in a tree without the built page.
func need(t testing.TB) {
	t.Helper()
	NeedBrowser(t)
	if _, err := os.Stat(filepath.Join(root(t), "internal", "console", "dist", "index.html")); err != nil &&
		os.Getenv("GOZZARD_BINARY") == "" {
		t.Skip("the page is not built: run make web")
	}
}

// root is the folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("not inside the module")
	return ""
}
