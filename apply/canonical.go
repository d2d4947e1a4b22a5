package apply

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// appendCanonical writes a value of JSON's own types so that equal values give equal bytes and others do not: keys in order, each part with
// its kind and its length. It is read by nobody; encoding the same as JSON takes several times as long, which is much of a run that finds no
// change.
func appendCanonical(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case map[string]any:
		b = appendLength(b, 'm', len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = append(appendLength(b, 'k', len(k)), k...)
			var err error
			if b, err = appendCanonical(b, v[k]); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
		return b, nil
	case []any:
		b = appendLength(b, 'l', len(v))
		for i, x := range v {
			var err error
			if b, err = appendCanonical(b, x); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return b, nil
	case string:
		return append(appendLength(b, 's', len(v)), v...), nil
	case int64:
		return binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v)), nil
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v)), nil
	case bool:
		if v {
			return append(b, 't'), nil
		}
		return append(b, 'n'), nil
	case nil:
		return append(b, '0'), nil
	}
	return nil, fmt.Errorf("%T is no type of JSON", v)
}

func appendLength(b []byte, kind byte, n int) []byte {
	return binary.AppendUvarint(append(b, kind), uint64(n))
}

// wantOf is the hash of what is asked for.
func wantOf(object map[string]any) (string, error) {
	raw, err := appendCanonical(make([]byte, 0, 2<<10), object)
	if err != nil {
		return "", err
	}
	return hash(raw), nil
}
