package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Condition selects points: a Go expression over the members that vary, with numbers, strings, true and
// false, == != < <= > >=, && || !, + - * / % and parentheses.
type Condition struct {
	Text string
	expr ast.Expr
}

const exampleCondition = `write nodes <= 16 || NCCL_ALGO == "Ring"`

// where parses one condition or a list of them.
func (p *specParser) where(s *Spec, n *yaml.Node) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, c := range list {
		if c.Kind != yaml.ScalarNode {
			return p.fail(c, exampleCondition, "a condition is missing")
		}
		e, err := parse(c.Value)
		if err == nil {
			err = known(e, maxDepth)
		}
		if err != nil {
			var many scanner.ErrorList
			text := err.Error()
			if errors.As(err, &many) && len(many) > 0 {
				text = fmt.Sprintf("at character %d: %s", many[0].Pos.Column, many[0].Msg)
			}
			return p.fail(c, exampleCondition, "the condition %q: %s", c.Value, text)
		}
		s.Where = append(s.Where, &Condition{Text: c.Value, expr: e})
	}
	return nil
}

// parse reads an expression of Go in which its keywords, as func and type, are names: they
// are written with a capital for Go's parser, which moves no character.
func parse(text string) (ast.Expr, error) {
	src := []byte(text)
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(src))
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, tok, _ := s.Scan()
		if tok == token.EOF {
			return parser.ParseExpr(string(src))
		}
		if tok.IsKeyword() {
			src[file.Offset(pos)] -= 'a' - 'A'
		}
	}
}

// columnOf returns the name of the column that an identifier means.
func columnOf(name string) string {
	if low := strings.ToLower(name); token.IsKeyword(low) {
		return low
	}
	return name
}

// maxDepth is the maximum nesting of parentheses.
const maxDepth = 100

func known(e ast.Expr, depth int) error {
	if depth == 0 {
		return fmt.Errorf("more than %d brackets within each other", maxDepth)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return known(e.X, depth-1)
	case *ast.Ident:
		return nil
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT || e.Kind == token.STRING {
			return nil
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT || e.Op == token.SUB {
			return known(e.X, depth-1)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ,
			token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
			return errors.Join(known(e.X, depth-1), known(e.Y, depth-1))
		}
	}
	return errors.New("only comparisons, &&, ||, !, arithmetic, numbers and texts are known")
}

// evaluate finds the value of an expression: a bool, float64 or string.
func evaluate(e ast.Expr, env map[string]any) (any, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X, env)
	case *ast.Ident:
		switch e.Name {
		case "true", "false":
			return e.Name == "true", nil
		}
		v, ok := env[columnOf(e.Name)]
		if !ok {
			return nil, fmt.Errorf("%s is no name of grid, zip, list or seeds", e.Name)
		}
		return v, nil
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strconv.Unquote(e.Value)
		}
		return strconv.ParseFloat(e.Value, 64)
	case *ast.UnaryExpr:
		return unary(e, env)
	case *ast.BinaryExpr:
		return binary(e, env)
	}
	return nil, errors.New("not an expression that is known")
}

func unary(e *ast.UnaryExpr, env map[string]any) (any, error) {
	v, err := evaluate(e.X, env)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		if e.Op == token.NOT {
			return !v, nil
		}
	case float64:
		if e.Op == token.SUB {
			return -v, nil
		}
	}
	return nil, fmt.Errorf("%v of %v", e.Op, v)
}

func binary(e *ast.BinaryExpr, env map[string]any) (any, error) {
	x, err := evaluate(e.X, env)
	if err != nil {
		return nil, err
	}
	if b, ok := x.(bool); ok && (e.Op == token.LAND && !b || e.Op == token.LOR && b) {
		return b, nil
	}
	y, err := evaluate(e.Y, env)
	if err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case bool:
		if y, ok := y.(bool); ok {
			switch e.Op {
			case token.LAND, token.LOR:
				return y, nil
			case token.EQL, token.NEQ:
				return (x == y) == (e.Op == token.EQL), nil
			}
		}
	case float64:
		if y, ok := y.(float64); ok {
			return numbers(e.Op, x, y)
		}
	case string:
		if y, ok := y.(string); ok {
			return ordered(e.Op, strings.Compare(x, y))
		}
	}
	return nil, fmt.Errorf("%v %v %v does not fit", x, e.Op, y)
}

// numbers evaluates an operator on two numbers.
func numbers(op token.Token, x, y float64) (any, error) {
	switch op {
	case token.ADD:
		return x + y, nil
	case token.SUB:
		return x - y, nil
	case token.MUL:
		return x * y, nil
	case token.QUO:
		return x / y, nil
	case token.REM:
		if int64(y) == 0 {
			return nil, errors.New("the remainder of a division by 0")
		}
		return float64(int64(x) % int64(y)), nil
	}
	switch {
	case x < y:
		return ordered(op, -1)
	case x > y:
		return ordered(op, 1)
	}
	return ordered(op, 0)
}

// ordered evaluates a comparison of two values, given their order: -1 if the first is less, 0, or 1.
func ordered(op token.Token, order int) (any, error) {
	switch op {
	case token.EQL:
		return order == 0, nil
	case token.NEQ:
		return order != 0, nil
	case token.LSS:
		return order < 0, nil
	case token.LEQ:
		return order <= 0, nil
	case token.GTR:
		return order > 0, nil
	case token.GEQ:
		return order >= 0, nil
	}
	return nil, fmt.Errorf("%v of these values", op)
}

// keeps evaluates the conditions. A name has the value of the point's member of that name; a list of one
// counts as its element.
func (s *Spec) keeps(p *Point) (bool, error) {
	if len(s.Where) == 0 {
		return true, nil
	}
	env := map[string]any{}
	for _, set := range p.Settings {
		var v any
		if err := json.Unmarshal(set.Value, &v); err != nil {
			return false, err
		}
		if l, ok := v.([]any); ok && len(l) == 1 {
			v = l[0]
		}
		env[set.Name] = v
	}
	for _, c := range s.Where {
		out, err := evaluate(c.expr, env)
		keep, ok := out.(bool)
		if err == nil && !ok {
			err = fmt.Errorf("%v is neither true nor false", out)
		}
		if err != nil {
			return false, fmt.Errorf("%s: where %q at %s: %w", s.File, c.Text, p.labels(), err)
		}
		if !keep {
			return false, nil
		}
	}
	return true, nil
}
