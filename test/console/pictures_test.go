//go:build linux && pictures

package console_test

import (
	"flag"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

var pictures = flag.String("pictures", "", "folder for the pictures")

// TestPictures makes the pictures of README and README.zh from a demo fleet: see "make pictures".
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Fatal("-pictures names the folder for the pictures")
	}
	f := console.StartFleet(t, 3, "--demo")
	p := f.Open(t)
	p.EnterByLink()
	p.WaitText("14 processes on 3 hosts")
	p.WaitText("crash loop") // the demo shows its faults
	p.WaitText("unhealthy")
	f.Operate(t, "restart", "lobby_1", "orders_1")
	p.Go("/console/process/GSEKIT_BIZ_1000/web_1?tab=charts")
	p.WaitSelector("main canvas")
	time.Sleep(2 * time.Minute) // charts with something to see
	tasks, err := f.Client.Tasks(t.Context(), client.TaskQuery{}, 1)
	if err != nil || len(tasks.Tasks) == 0 {
		t.Fatalf("tasks %+v, %v", tasks, err)
	}

	p.Size(1280, 800)
	for _, language := range []struct{ button, suffix string }{{"", ""}, {"中文", "-zh"}} {
		if language.button != "" {
			p.Click("button", language.button)
			p.Wait("link", "总览")
		}
		for _, theme := range []string{"light", "dark"} {
			p.Prefer("prefers-color-scheme", theme)
			for name, path := range map[string]string{"overview": "/", "processes": "/processes", "task": "/tasks/" + url.PathEscape(tasks.Tasks[0].ID),
				"process": "/process/GSEKIT_BIZ_1000/web_1?tab=charts"} {
				if language.suffix != "" && theme == "dark" {
					continue // one theme shows the Chinese pages
				}
				p.Go("/console" + path)
				p.WaitSelector("main h1")
				p.WaitNoSelector("main .loading")
				p.Settle()
				p.Picture(filepath.Join(*pictures, name+"-"+theme+language.suffix+".png"))
			}
		}
	}
}
