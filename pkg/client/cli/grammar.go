package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What is made and changed is said in two grammars, ours (--max-time=30) and Slurm's (MaxTime=30). Each command has one for itself, and
// takes what was written in the other.

// setByWords sets the options that are among the arguments as words, KEY=VALUE, and returns the arguments that are left. What names no
// option stays.
func setByWords(cmd *cobra.Command, args []string) (left []string, err error) {
	bare := func(name string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)) }
	options := map[string]*pflag.Flag{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { options[bare(f.Name)] = f })
	for _, arg := range args {
		key, value, given := strings.Cut(arg, "=")
		f := options[bare(key)]
		if !given || f == nil {
			left = append(left, arg)
			continue
		}
		if f.Value.Type() == "bool" {
			value = strings.NewReplacer("yes", "true", "no", "false").Replace(strings.ToLower(value))
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			return nil, Usagef("%s: %w", arg, err)
		}
	}
	return left, nil
}

// byOptions lets a command whose arguments are words take each of these words as an option too.
func byOptions(cmd *cobra.Command, words []string) *cobra.Command {
	for _, w := range words {
		cmd.Flags().String(w, "", "the same as the word "+w)
		_ = cmd.Flags().MarkHidden(w)
	}
	check, run := cmd.Args, cmd.RunE
	said := func(cmd *cobra.Command, args []string) []string {
		for _, w := range words {
			if f := cmd.Flags().Lookup(w); f.Changed {
				args = append(args, w+"="+f.Value.String())
			}
		}
		return args
	}
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, said(cmd, args)) }
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, said(cmd, args)) }
	return cmd
}
