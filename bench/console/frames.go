//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// wheelSpeed is how fast a person turns the wheel at most, in pixels a second: a step of 100 in each of 60 frames.
const wheelSpeed = 6000

// frames are the times between frames, in milliseconds.
type frames struct {
	P50, P95, Count float64
	Top             float64 // how far the element is scrolled in the end
}

// scroll turns the wheel over an element, as a person does, and measures the frames meanwhile.
func scroll(ctx context.Context, selector string, length time.Duration) (frames, error) {
	at, err := evaluate[struct{ X, Y, Top float64 }](ctx, fmt.Sprintf(beginFrames, selector))
	if err != nil {
		return frames{}, err
	}
	_, err = chromedp.Call(ctx, input.SynthesizeScrollGesture, input.SynthesizeScrollGestureParams{X: at.X, Y: at.Y,
		YDistance: -wheelSpeed * length.Seconds(), Speed: wheelSpeed, GestureSourceType: input.GestureSourceTypeMouse})
	if err != nil {
		return frames{}, err
	}

	f, err := evaluate[frames](ctx, fmt.Sprintf(endFrames, selector))
	if err == nil && f.Top <= at.Top {
		err = fmt.Errorf("%s did not scroll", selector)
	}
	return f, err
}
