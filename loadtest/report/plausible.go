package report

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// largest is beyond any figure that a run can have: no time, size or rate
// comes near it, and sums of such figures are still numbers.
const largest = 1e18

// plausible looks for a figure that can't be one, in value and all below it,
// and names it as JSON does.
func plausible(name string, value reflect.Value) error {
	switch value.Kind() {
	case reflect.Float64:
		if f := value.Float(); math.IsNaN(f) || math.Abs(f) > largest {
			return fmt.Errorf(" %s is %g, which no run can have", name, f)
		}
	case reflect.Pointer:
		if !value.IsNil() {
			return plausible(name, value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if err := plausible(strings.TrimPrefix(name+"."+tag, "."), value.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			if err := plausible(fmt.Sprintf("%s[%d]", name, i), value.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			if err := plausible(fmt.Sprintf("%s.%v", name, key), value.MapIndex(key)); err != nil {
				return err
			}
		}
	}
	return nil
}
