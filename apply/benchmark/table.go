package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// printTables writes one table for each size, then the limits, then what each engine was told.
func printTables(w io.Writer, r results, sizes []int, engines []engine, missing []string) {
	for _, size := range sizes {
		fmt.Fprintf(w, "%d objects:\n\n| engine | cold | no-op | one changed | requests: cold | no-op | one changed |\n| --- | --- | --- | --- | --- | --- | --- |\n", size)
		for _, e := range engines {
			printRow(w, r, size, e)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| limit | measured | allowed | |\n| --- | --- | --- | --- |\n")
	for _, v := range judge(r, sizes, engines) {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", v.what, number(v.measured), bound(v), map[bool]string{true: "holds", false: "**broken**"}[v.holds()])
	}
	fmt.Fprint(w, "\n| engine | is told |\n| --- | --- |\n")
	for _, e := range engines {
		fmt.Fprintf(w, "| %s | %s |\n", e.name, e.told)
	}
	for _, m := range missing {
		fmt.Fprintf(w, "\nMissing: %s\n", m)
	}
}

func printRow(w io.Writer, r results, size int, e engine) {
	var times, requests []string
	for _, p := range phases() {
		c, ok := r[key{size, e.name, p}]
		if !ok || len(c.times) == 0 {
			times, requests = append(times, "—"), append(requests, "—")
			continue
		}
		times = append(times, multiples(*c, r.baseline(size, p)))
		requests = append(requests, strconv.FormatInt(c.requests, 10))
	}
	if strings.Count(strings.Join(times, ""), "—") < len(times) {
		fmt.Fprintf(w, "| %s | %s | %s |\n", e.name, strings.Join(times, " | "), strings.Join(requests, " | "))
	}
}

// baseline is what a phase is a multiple of. To write one changed object raw has to write all, as in its no-op.
func (r results) baseline(size int, p phase) cell {
	if p == change {
		p = noop
	}
	return *r.at(size, "raw", p)
}

func multiples(c, raw cell) string {
	return fmt.Sprintf("%s (%s) · %s", number(c.min().Seconds()/raw.min().Seconds()), number(c.median().Seconds()/raw.median().Seconds()), duration(c.min()))
}

func duration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// number shows enough digits to compare with a limit.
func number(f float64) string {
	switch {
	case f == float64(int64(f)):
		return fmt.Sprintf("%d", int64(f))
	case f < 1:
		return fmt.Sprintf("%.3f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func bound(v verdict) string {
	if v.atLeast {
		return "≥ " + number(v.limit)
	}
	return "≤ " + number(v.limit)
}
