package hclfile

import (
	"bytes"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// LiteralText gives a text that is written out in quotes, without variables,
// functions or templates in it.
func LiteralText(expr hclsyntax.Expression) (string, bool) {
	if _, ok := expr.(*hclsyntax.TemplateExpr); !ok || !isLiteral(expr) {
		return "", false
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// PlainText evaluates a text that may be shown; false for anything else.
func PlainText(s *Scope, f *File, expr hclsyntax.Expression, report *Report) (string, bool) {
	raw, ok := s.Eval(f, expr, report)
	if !ok || !raw.IsWhollyKnown() {
		return "", false
	}
	v := Value{File: f, Range: expr.Range(), raw: raw, expr: expr, scope: s}
	return v.text(report, nil)
}

// maxExponent is the binary exponent of the largest numbers that are
// evaluated: far above what anybody means, far below where writing a number
// out takes minutes.
const maxExponent = 4096

// hugeNumber finds a number that is written with an exponent beyond reason.
func hugeNumber(expr hclsyntax.Expression) (at hcl.Range, found bool) {
	if expr == nil {
		return at, false
	}
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) (none hcl.Diagnostics) {
		l, ok := n.(*hclsyntax.LiteralValueExpr)
		if !ok || l.Val.Type() != cty.Number || l.Val.IsNull() || !l.Val.IsKnown() {
			return none
		}
		if exponent := l.Val.AsBigFloat().MantExp(nil); exponent > maxExponent || exponent < -maxExponent {
			at, found = l.Range(), true
		}
		return none
	})
	return at, found
}

// isLiteral tells whether nothing in the expression has to be looked up or
// computed.
func isLiteral(expr hclsyntax.Expression) bool {
	literal := true
	// The walk itself cannot fail.
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) (none hcl.Diagnostics) {
		switch n.(type) {
		case *hclsyntax.FunctionCallExpr, *hclsyntax.ScopeTraversalExpr:
			literal = false
		}
		return none
	})
	return literal
}

// BlockSource is the text of a block with the comment above it. What is
// written out for attributes that are named like secrets is left out.
func (f *File) BlockSource(b *hclsyntax.Block) string {
	end := b.CloseBraceRange.End.Byte
	start := lineStart(f.Source, b.TypeRange.Start.Byte)
	for start > 0 {
		above := lineStart(f.Source, start-1)
		line := bytes.TrimSpace(f.Source[above : start-1])
		if !bytes.HasPrefix(line, []byte("#")) && !bytes.HasPrefix(line, []byte("//")) {
			break
		}
		start = above
	}
	if end < start || end > len(f.Source) {
		return ""
	}
	var out bytes.Buffer
	at := start
	for _, hole := range literalSecrets(b.Body) {
		if hole[0] < at || hole[1] > end {
			continue
		}
		out.Write(f.Source[at:hole[0]])
		out.WriteString(`"` + masked + `"`)
		at = hole[1]
	}
	out.Write(f.Source[at:end])
	out.WriteByte('\n')
	return out.String()
}

func lineStart(src []byte, at int) int { return bytes.LastIndexByte(src[:at], '\n') + 1 }

// literalSecrets gives the byte ranges of secrets that are written out, in the
// order of the text.
func literalSecrets(body *hclsyntax.Body) [][2]int {
	var holes [][2]int
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) (none hcl.Diagnostics) {
		switch n := n.(type) {
		case *hclsyntax.Attribute:
			if LooksSecret(n.Name) && isLiteral(n.Expr) {
				holes = append(holes, [2]int{n.Expr.Range().Start.Byte, n.Expr.Range().End.Byte})
			}
		case *hclsyntax.ObjectConsExpr:
			for _, item := range n.Items {
				key, diags := item.KeyExpr.Value(nil)
				if diags.HasErrors() || key.Type() != cty.String || !key.IsKnown() || key.IsNull() {
					continue
				}
				if LooksSecret(key.AsString()) && isLiteral(item.ValueExpr) {
					holes = append(holes, [2]int{item.ValueExpr.Range().Start.Byte, item.ValueExpr.Range().End.Byte})
				}
			}
		}
		return none
	})
	sort.Slice(holes, func(i, j int) bool { return holes[i][0] < holes[j][0] })
	return holes
}
