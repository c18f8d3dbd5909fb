package mako_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gozzard/gozzard/internal/mako"
)

// TestFoundIsKept renders templates several times with one tree, which keeps what paths gave. Each render has the same output as
// the first with a tree of its own, also after a render that changed the list it got.
func TestFoundIsKept(t *testing.T) {
	text := readVectors(t).Tree
	shared := processContext(t, readTree(t, text))
	for _, one := range []string{
		"<%\nall = cc.xpath('//Host/@InnerIP')\n%>${len(all)} ${all}",
		"<%\nall = cc.xpath('//Host/@InnerIP')\nall.reverse()\nall.append('more')\ndel all[0]\nall[0] = 'other'\n%>${all}",
		"<%\nall = cc.xpath('//Host/@InnerIP')\nall += all\n%>${len(all)} ${all}",
		"<%\nall = cc.findall('.//Host')\nall.clear()\n%>${len(all)} ${len(cc.findall('.//Host'))}",
		"${[h.attrib['InnerIP'] for h in cc.findall('.//Host')]}",
		"${cc.xpath('count(//Host)')} ${cc.xpath('string(//Host/@InnerIP)')} ${cc.xpath('count(//Host) > 3')}",
		"${len(this.cc_module.xpath('Host'))} ${len(this.cc_set.xpath('Host'))} ${len(cc[1].xpath('.//Host'))} ${len(cc.xpath('.//Host'))}",
		"% try:\n${cc.xpath('//Host[')}\n% except SyntaxError as e:\n${e}\n% endtry\n",
	} {
		want, err := render(one, processContext(t, readTree(t, text)))
		if err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		for i := range 3 {
			if got, err := render(one, shared); err != nil || got != want {
				t.Errorf("render %d of %s:\n got %q %v\nwant %q", i+1, one, got, err, want)
			}
		}
	}
}

// TestFoundAtOnce renders with one tree in many goroutines, each of which changes what it got.
func TestFoundAtOnce(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	compiled, err := mako.Compile("<%\nall = cc.xpath('//Host')\nn = len(all)\nall.clear()\n%>${n} ${len(all)}", mako.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}

	var g sync.WaitGroup
	for range 16 {
		g.Go(func() {
			for range 50 {
				if got, err := compiled.Render(context.Background(), with, mako.DefaultLimits()); err != nil || got != "12 0" {
					t.Errorf("got %q %v", got, err)
				}
			}
		})
	}
	g.Wait()
}

// TestTD30FoundIsPaid looks for the least memory that a template needs. It is the same when the tree knows already what its paths
// give: nobody gets around the limit because another render was first, and no render fails because it is the first.
func TestTD30FoundIsPaid(t *testing.T) {
	text := readVectors(t).Tree
	for _, one := range []string{
		"${len(cc.xpath('//Host[@InnerIP]'))}",
		"${[len(cc.xpath('//Host')) for i in range(20)]}",
		"${cc.xpath('string(//Host/@InnerIP)')} ${len(cc.findall('.//Host'))} ${this.cc_module.xpath('count(Host)')}",
	} {
		t.Run(one, func(t *testing.T) {
			compiled, err := mako.Compile(one, mako.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			fits := func(with *mako.Context, memory int) bool {
				limits := small()
				limits.Memory = memory
				_, err := compiled.Render(context.Background(), with, limits)
				if err != nil && !strings.Contains(err.Error(), "memory") {
					t.Fatal(err)
				}
				return err == nil
			}

			least, most := 0, 16<<20
			for most-least > 1 {
				half := (least + most) / 2
				if fits(processContext(t, readTree(t, text)), half) {
					most = half
				} else {
					least = half
				}
			}

			shared := processContext(t, readTree(t, text))
			for i := range 3 {
				if !fits(shared, most) || fits(shared, most-1) {
					t.Errorf("render %d does not need exactly %d bytes", i+1, most)
				}
			}
		})
	}
}

// TestFoundBeyondBounds asks more paths of one tree than it keeps. All have their answers.
func TestFoundBeyondBounds(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for i := range 600 {
		for range 2 {
			got, err := render(fmt.Sprintf("${cc.xpath('count(//Host) + %d')}", i), with)
			if want := fmt.Sprintf("%d.0", 12+i); err != nil || got != want {
				t.Fatalf("got %q %v, want %q", got, err, want)
			}
		}
	}
}
