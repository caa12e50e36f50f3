package program

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/core/cmdline"
)

// Table gives a command the options of the command by Slurm's name that does the same, from its table: a row is both. Those
// that are kept as Slurm has them stand in the help; others are taken, or refused, as there. What every command has by
// itself (--help, --version) is left to it.
func Table[T any](c *cobra.Command, options []cmdline.Option[T], t *T) {
	for i := range options {
		o := &options[i]
		if o.Long == "" || o.Long == "help" || o.Long == "usage" || o.Long == "version" {
			continue
		}
		letter := ""
		if o.Short != 0 {
			letter = string(rune(o.Short))
		}
		for _, name := range o.Spellings() {
			f := c.Flags().VarPF(&rowValue[T]{o, t, ""}, name, letter, o.Help)
			f.Hidden = name != o.Long || o.List != cmdline.Exact && o.List != cmdline.Own
			switch o.Kind {
			case cmdline.None:
				f.NoOptDefVal = "true"
			case cmdline.Optional:
				f.NoOptDefVal = cmp.Or(o.Default, " ")
			}
			letter = ""
		}
	}
}

// rowValue is the value of an option as its row of a table takes it.
type rowValue[T any] struct {
	*cmdline.Option[T]
	of   *T
	text string
}

// Set hands the value to the row.
func (v *rowValue[T]) Set(text string) error {
	v.text = text
	switch {
	case v.List == cmdline.Refused:
		return Usagef("--%s is refused: %s", v.Long, v.Kept())
	case v.Kind == cmdline.None && text != "true":
		return errors.New("it takes no value")
	case v.Kind == cmdline.None:
		text = ""
	}
	if v.Option.Set == nil {
		return nil
	}
	return v.Option.Set(v.of, strings.TrimSpace(text))
}

func (v *rowValue[T]) String() string { return v.text }

// Type is the value's name in the help.
func (v *rowValue[T]) Type() string {
	if v.Kind == cmdline.None {
		return "bool"
	}
	return cmp.Or(v.Arg, "VALUE")
}
