package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// quantityForm is what a Size may say: digits with an optional fraction, then a suffix. It is narrower than Kubernetes'
// resource.Quantity (no sign, no exponent, no n or u) and wider in nothing, so that every accepted text means the same in both.
var quantityForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$`)

const maxQuantityText = 64 // a longer text is no number that anybody writes, and big.Rat would have to expand it

// ParseMemory reads a memory quantity as a Size states it and gives bytes, rounded up. v is a string ("1.5Gi", "512Mi", "1000000"),
// a json.Number, or any Go integer or float. Zero, signs, exponents and the suffixes n and u are errors.
func ParseMemory(v any) (int64, error) { return parseQuantity(v, 1) }

// ParseCPU reads a cpu quantity as a Size states it and gives millicores, rounded up: "500m", "1.5", 2.
func ParseCPU(v any) (int64, error) { return parseQuantity(v, 1000) }

func parseQuantity(v any, unit int64) (int64, error) {
	n, err := exactValue(v)
	if err != nil {
		return 0, err
	}
	if n.Sign() <= 0 {
		return 0, errors.New("must be more than zero")
	}
	n.Mul(n, new(big.Rat).SetInt64(unit))
	whole, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return 0, errors.New("is more than any node can have")
	}
	return whole.Int64(), nil
}

func exactValue(v any) (*big.Rat, error) {
	switch v := v.(type) {
	case string:
		return exactText(v)
	case json.Number:
		return exactNumber(v.String())
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("must be a finite number")
		}
		return exactNumber(strconv.FormatFloat(v, 'g', -1, 64))
	case int:
		return new(big.Rat).SetInt64(int64(v)), nil
	case int64:
		return new(big.Rat).SetInt64(v), nil
	}
	return nil, fmt.Errorf("want a quantity such as %q or a number, got %T", "2Gi", v)
}

// exactNumber reads the shortest decimal text of a number. Its exponent is bounded, because big.Rat writes every digit out.
func exactNumber(text string) (*big.Rat, error) {
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(f) > 1e30 || math.Abs(f) < 1e-30 || len(text) > maxQuantityText {
		if err == nil && f == 0 && len(text) <= maxQuantityText {
			return new(big.Rat), nil
		}
		return nil, fmt.Errorf("%s is no size", clip(strings.TrimSpace(text)))
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%s is no size", clip(text))
	}
	return n, nil
}

func exactText(text string) (*big.Rat, error) {
	trimmed := strings.TrimSpace(text)
	m := quantityForm.FindStringSubmatch(trimmed)
	if m == nil || len(trimmed) > maxQuantityText {
		return nil, fmt.Errorf("%q is no quantity: digits, then one of m k M G T P E Ki Mi Gi Ti Pi Ei or nothing", clip(text))
	}
	n, ok := new(big.Rat).SetString(strings.TrimSuffix(m[1], "."))
	if !ok {
		return nil, fmt.Errorf("%q is no quantity", clip(text))
	}
	return n.Mul(n, suffixValue(m[2])), nil
}

func suffixValue(suffix string) *big.Rat {
	if suffix == "m" {
		return big.NewRat(1, 1000)
	}
	base := int64(1000)
	if strings.HasSuffix(suffix, "i") {
		base = 1024
		suffix = strings.ToUpper(suffix[:1])
	}
	power := int64(0)
	if suffix != "" {
		power = int64(strings.Index("KMGTPE", strings.ToUpper(suffix)) + 1)
	}
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(power), nil))
}

// FormatMemory prints bytes with the largest of Gi, Mi and Ki that divides them exactly, else as plain bytes: 1Ti is "1024Gi",
// 1.5Gi is "1536Mi".
func FormatMemory(bytes int64) string {
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// FormatCPU prints millicores as whole cpus when they are, else as "<n>m".
func FormatCPU(millicores int64) string {
	if millicores%1000 == 0 {
		return strconv.FormatInt(millicores/1000, 10)
	}
	return strconv.FormatInt(millicores, 10) + "m"
}

func formatSigned(bytes int64) string {
	if bytes < 0 {
		return "less than nothing"
	}
	return FormatMemory(bytes)
}

// clip keeps a text that comes from a folder short enough for one line of an error.
func clip(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
