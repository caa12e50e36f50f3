// Package extremes gives tests every number of a request or a frame the values at which
// arithmetic breaks. It knows no type of ours. Begin with [Each].
package extremes

import (
	"math"
	"reflect"
	"strconv"
)

// Values are what a number is set to, where its type has them.
var Values = []int64{math.MinInt64, -1 << 31, -2, -1, 0, 1, 1 << 31, 1 << 53, 1<<53 + 1, math.MaxInt64}

// Each calls fn with v, a pointer to a struct, for every number within and every one of
// [Values] that it can hold, while the number has that value. Pointers that are nil and slices that
// are empty get one element meanwhile. Afterwards v is as it was.
func Each(v any, fn func(field string, value int64)) {
	visit(reflect.ValueOf(v).Elem(), "", fn)
}

func visit(v reflect.Value, path string, fn func(string, int64)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	defer v.Set(was)
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		for _, n := range Values {
			if !v.OverflowInt(n) {
				v.SetInt(n)
				fn(path, n)
			}
		}
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		for _, n := range Values {
			if !v.OverflowUint(uint64(n)) {
				v.SetUint(uint64(n))
				fn(path, n)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		visit(v.Elem(), path, fn)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			visit(v.Index(i), path+"["+strconv.Itoa(i)+"]", fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				visit(v.Field(i), path+"."+f.Name, fn)
			}
		}
	}
}
