package report

import "strings"

// table lays out columns. The first column is left-aligned, and so are those
// named in left; all others are right-aligned, as figures should be.
type table struct {
	head []string
	rows [][]string
	left map[int]bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// lines renders the table with two blanks between columns and none at the
// end of a line.
func (t *table) lines(s style) []string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], width(cell))
		}
	}
	format := func(row []string) string {
		cells := make([]string, len(row))
		for i, cell := range row {
			if i == 0 || t.left[i] {
				cells[i] = padRight(cell, widths[i])
			} else {
				cells[i] = padLeft(cell, widths[i])
			}
		}
		return strings.TrimRight(strings.Join(cells, "  "), " ")
	}
	out := make([]string, 0, 1+len(t.rows))
	if head := format(t.head); head != "" {
		out = append(out, s.dim(head))
	}
	for _, row := range t.rows {
		out = append(out, format(row))
	}
	return out
}
