package sim

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gangd/pkg/api"
)

// Literal is the scenario as a Go expression, to be kept as a directed test.
func (sc *Scenario) Literal() string {
	var b strings.Builder
	write(&b, reflect.ValueOf(*sc), "")
	return "&" + b.String()
}

// write prints what is not zero. It is for the types of this package alone.
func write(b *strings.Builder, v reflect.Value, indent string) {
	switch x := v.Interface().(type) {
	case time.Duration:
		fmt.Fprintf(b, "%d * time.Millisecond", x.Milliseconds())
		if rest := x % time.Millisecond; rest != 0 {
			fmt.Fprintf(b, " + %d", rest)
		}
		return
	case Kind, Site, api.EventType:
		fmt.Fprintf(b, "%q", x)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		structure(b, v, indent)
	case reflect.Slice:
		fmt.Fprintf(b, "%s{\n", v.Type())
		for i := range v.Len() {
			b.WriteString(indent + "\t")
			write(b, v.Index(i), indent+"\t")
			b.WriteString(",\n")
		}
		b.WriteString(indent + "}")
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprintf(b, "%v", v.Interface())
	}
}

func structure(b *strings.Builder, v reflect.Value, indent string) {
	whole := v.Type() == reflect.TypeFor[Scenario]()
	fmt.Fprintf(b, "%s{", v.Type())
	sep := ""
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() || f.Kind() == reflect.Pointer {
			continue
		}
		if whole {
			b.WriteString("\n" + indent + "\t")
		} else {
			b.WriteString(sep)
			sep = ", "
		}
		b.WriteString(v.Type().Field(i).Name + ": ")
		write(b, f, indent+"\t")
		if whole {
			b.WriteString(",")
		}
	}
	if whole {
		b.WriteString("\n" + indent)
	}
	b.WriteString("}")
}
