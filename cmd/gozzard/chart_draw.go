package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	labelWidth = 10
	axisWidth  = labelWidth + 2 // and a blank and the line beside it

	hole = -1 // a value that was not measured
)

// eighths are the parts of a cell that is filled from below.
var eighths = []rune(" ▁▂▃▄▅▆▇█")

// lineOf is a list of a history with hole for null.
func lineOf[N int64 | float64](list []*N) []float64 {
	line := make([]float64, len(list))
	for i, v := range list {
		line[i] = hole
		if v != nil {
			line[i] = float64(*v)
		}
	}
	return line
}

func anyOf(line []float64) bool {
	for _, v := range line {
		if v >= 0 {
			return true
		}
	}
	return false
}

// summary is the last value, the average and the largest one, hole if nothing was measured.
func summary(line []float64) (now, average, most float64) {
	now, average, most = hole, hole, hole
	sum, n := 0.0, 0
	for _, v := range line {
		if v >= 0 {
			now, most, sum, n = v, max(most, v), sum+v, n+1
		}
	}
	if n > 0 {
		average = sum / float64(n)
	}
	return now, average, most
}

// draw draws columns of a height, with the values of the top and the middle beside them.
func draw(line []float64, height int, unit func(float64) string) string {
	top := roundUp(largestOf(line))

	var b strings.Builder
	for row := height; row >= 1; row-- {
		label := ""
		switch {
		case row == height:
			label = unit(top)
		case row == height/2:
			label = unit(top / 2)
		}
		b.WriteString(pad(label) + " │")

		cells := make([]rune, len(line))
		for i, v := range line {
			cells[i] = cellOf(v, top, row, height)
		}
		b.WriteString(strings.TrimRight(string(cells), " ") + "\n")
	}
	b.WriteString(pad(unit(0)) + " └" + strings.Repeat("─", len(line)) + "\n")
	return b.String()
}

// cellOf is the character of a value in a row. A value above 0 is always visible.
func cellOf(v, top float64, row, height int) rune {
	if v <= 0 {
		return ' '
	}
	full := max(int(math.Round(v/top*float64(height*8))), 1)
	return eighths[min(max(full-(row-1)*8, 0), 8)]
}

func largestOf(line []float64) (most float64) {
	for _, v := range line {
		most = max(most, v)
	}
	return most
}

// roundUp is a round number that is not smaller: 1, 2, 4, 5 or 8 times a power of ten.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 4, 5, 8} {
		if n*power >= v {
			return n * power
		}
	}
	return 10 * power
}

// pad puts a label to the right.
func pad(s string) string {
	return strings.Repeat(" ", max(labelWidth-text.StringWidthWithoutEscSequences(s), 0)) + s
}

// timeAxis is the line with the times below a chart: as many as fit, and always the first one.
func timeAxis(from time.Time, step time.Duration, n int) string {
	form := "15:04:05"
	switch span := step * time.Duration(n); {
	case span > 12*time.Hour:
		form = "01-02 15:04"
	case span > 20*time.Minute:
		form = "15:04"
	}

	var b strings.Builder
	b.WriteString(strings.Repeat(" ", axisWidth))
	every := max(len(form)+6, 15)
	for i := 0; i < n; i += every {
		if i > 0 && i+len(form) > n {
			break
		}
		b.WriteString(fmt.Sprintf("%-*s", every, from.Add(step*time.Duration(i)).Local().Format(form)))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// The values beside the charts. A hole is -.

func percentText(v float64) string {
	if v < 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + "%"
}

func numberText(v float64) string {
	if v < 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// mebibyteText is for values in MiB, so that the axis has round numbers of them.
func mebibyteText(v float64) string {
	if v < 0 {
		return "-"
	}
	return mebibytes(int64(v * (1 << 20)))
}
