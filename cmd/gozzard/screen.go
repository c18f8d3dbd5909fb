package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// The control sequences of a screen that is redrawn. The second screen of the terminal is used, so that the text that
// was there before comes back at the end.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // to the second screen, hide the cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor to the end of the line
	clearRest   = "\x1b[J" // from the cursor to the end of the screen
)

// The size of a terminal that does not say its size.
const (
	usualWidth  = 80
	usualHeight = 24
)

// picture is what a screen shows: lines of a table below a title.
type picture struct {
	title string
	lines []string // the first one is the header of the table
	hint  string   // how to see the rows that do not fit
}

// watchScreen shows pictures on the whole terminal until ctx ends. The last picture stays while draw fails, below the
// error, as long as the error may pass. press gets the keys that are pressed and returns false when the screen shall end; it
// may be nil.
func (env *cliEnv) watchScreen(ctx context.Context, pause time.Duration, press func(key byte) bool,
	draw func(height int) (picture, error)) (err error) {
	if err := checkWrite(io.WriteString(env.out, enterScreen)); err != nil {
		return err
	}
	defer func() {
		if _, failed := io.WriteString(env.out, leaveScreen); err == nil {
			err = checkWrite(0, failed)
		}
	}()

	var keys *keyboard
	if press != nil {
		if keys = openKeyboard(); keys != nil {
			defer keys.close()
		}
	}

	var shown picture
	for {
		width, height := env.size()
		switch next, err := draw(height); {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes(err):
			return err
		case err != nil:
			shown.title = env.text("gozzard: %s; trying again", printable(errorText(env.chinese, err)))
		default:
			shown = next
		}
		if err := checkWrite(io.WriteString(env.out, shown.frame(width, height))); err != nil {
			return err
		}
		if key, pressed := keys.wait(ctx, pause); ctx.Err() != nil || pressed && !press(key) {
			return nil
		}
	}
}

// wait waits until a key is pressed, the time is over, or ctx ends. k may be nil.
func (k *keyboard) wait(ctx context.Context, pause time.Duration) (key byte, pressed bool) {
	for end := time.Now().Add(pause); k != nil && ctx.Err() == nil && time.Until(end) > 0; {
		began := time.Now()
		if key, pressed := k.read(); pressed {
			return key, true
		}
		if time.Since(began) < 50*time.Millisecond { // the terminal is gone, and no read waits any more
			pause, k = time.Until(end), nil
		}
	}
	if k != nil {
		return 0, false
	}

	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	return 0, false
}

// frame is the text that draws the picture on a screen of this size. It overwrites the last frame line by line, so
// that nothing flickers, and never reaches beyond the screen.
func (p *picture) frame(width, height int) string {
	lines := append([]string{p.title}, p.lines...)
	if room := max(height-1, 1); len(lines) > height {
		rows := len(p.lines) - max(room-1, 1) // the title and the header of the table are no rows
		lines = append(lines[:room:room], fmt.Sprintf("... %d more; %s", rows, p.hint))
	}

	var b strings.Builder
	b.WriteString(cursorHome)
	for i, l := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cutLine(l, width) + clearLine)
	}
	b.WriteString(clearRest)
	return b.String()
}

// cutLine cuts a line to a number of columns of a terminal. Control sequences of colours take no column, and a Chinese
// character takes two.
func cutLine(line string, width int) string {
	if text.StringWidthWithoutEscSequences(line) <= width {
		return line
	}

	column, coloured := 0, false
	for i := 0; i < len(line); {
		if n := colourLength(line[i:]); n > 0 {
			coloured = line[i:i+n] != endColour
			i += n
			continue
		}
		r := []rune(line[i:min(i+4, len(line))])[0]
		if column += text.RuneWidth(r); column > width {
			if coloured {
				return line[:i] + endColour
			}
			return line[:i]
		}
		i += len(string(r))
	}
	return line
}

// colourLength is the length of the control sequence of a colour that the text begins with, 0 if there is none.
func colourLength(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	return strings.IndexByte(s, 'm') + 1
}
