package sheet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Beside adds the tables of several runs of one benchmark, with the figures of now beside those of before: medians, with the
// least and the greatest. Of a line with several figures the first one counts. Lines without a figure are left out.
func (s *Sheet) Beside(now, before []*Sheet) {
	if len(now) == 0 {
		return
	}
	for _, t := range now[0].tables {
		var out *Table
		for _, l := range t.lines {
			ours, peer := figuresOf(now, t.title, l[0]), figuresOf(before, t.title, l[0])
			if len(ours) == 0 || len(peer) == 0 {
				continue
			}
			if out == nil {
				out = s.Table(t.title, "now", "before")
			}
			ratio := ""
			if b := median(peer).value; b > 0 {
				ratio = fmt.Sprintf("%.2f×", median(ours).value/b)
			}
			out.Add(l[0], spread(ours), spread(peer), ratio, "")
		}
	}
}

// figure is a number with its unit. Times are in seconds.
type figure struct {
	value float64
	unit  string
}

// figuresOf lists the figures of one line in several runs, sorted.
func figuresOf(runs []*Sheet, title, what string) (list []figure) {
	for _, s := range runs {
		for _, t := range s.tables {
			for _, l := range t.lines {
				if t.title != title || l[0] != what {
					continue
				}
				if f, ok := parseFigure(l[1]); ok {
					list = append(list, f)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b figure) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	return list
}

// parseFigure reads the first figure of a text such as "5.41 ms / 16.1 ms".
func parseFigure(text string) (f figure, ok bool) {
	text, _, _ = strings.Cut(text, " / ")
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return f, false
	}
	scale, isTime := map[string]float64{"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]
	if isTime {
		return figure{value * scale, "s"}, true
	}
	return figure{value, unit}, true
}

func median(sorted []figure) figure { return sorted[len(sorted)/2] }

// spread formats the median, with the least and the greatest of several.
func spread(sorted []figure) string {
	if len(sorted) == 1 {
		return sorted[0].String()
	}
	return fmt.Sprintf("%s (%s–%s)", median(sorted), sorted[0], sorted[len(sorted)-1])
}

// String implements fmt.Stringer.
func (f figure) String() string {
	if f.unit != "s" {
		return strings.TrimSpace(fmt.Sprintf("%.4g %s", f.value, f.unit))
	}
	switch {
	case f.value < time.Millisecond.Seconds():
		return fmt.Sprintf("%.3g µs", f.value*1e6)
	case f.value < 1:
		return fmt.Sprintf("%.3g ms", f.value*1e3)
	}
	return fmt.Sprintf("%.3g s", f.value)
}
