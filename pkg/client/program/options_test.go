package program

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestOptionsAreRead: pflag reads the line, with names that may be cut short and our words for what is wrong.
func TestOptionsAreRead(t *testing.T) {
	const help = "; run drill --help\n"
	for line, want := range map[string]string{
		"":                              "depth=0 steps= size= me=false []",
		"--depth=3 a b":                 "depth=3 steps= size= me=false [a b]",
		"a --dep 3 b":                   "depth=3 steps= size= me=false [a b]",
		"-d3 -mz big":                   "depth=3 steps= size=big me=true []",
		"-d=3 --me=false":               "depth=3 steps= size= me=false []",
		"-s12.0 -- -s":                  "depth=0 steps=12.0 size= me=false [-s]",
		"-s 12.0":                       "depth=0 steps=all size= me=false [12.0]",
		"--steps=12.0 -":                "depth=0 steps=12.0 size= me=false [-]",
		"--si x":                        "depth=0 steps= size=x me=false []",
		"--s=x":                         "2 drill: option '--s' is ambiguous; possibilities: '--steps' '--size'" + help,
		"--dpeth=3":                     "2 drill: unknown option --dpeth: did you mean --depth?" + strings.Replace(help, ";", "", 1),
		"--xyzzy":                       "2 drill: unknown option --xyzzy" + help,
		"-mx":                           "2 drill: unknown option -x" + help,
		"---me":                         "2 drill: unknown option ---me" + help,
		"--=3":                          "2 drill: unknown option --=3" + help,
		"-test.v":                       "2 drill: unknown option -t" + help,
		"--dep":                         "2 drill: --depth needs a value (METRES)" + help,
		"-md":                           "2 drill: --depth needs a value (METRES)" + help,
		"-d x":                          "2 drill: invalid value \"x\" for --depth: strconv.ParseInt: parsing \"x\": invalid syntax" + help,
		"-d x --help":                   "2 drill: invalid value \"x\" for --depth: strconv.ParseInt: parsing \"x\": invalid syntax" + help,
		"--vers":                        "0 drill dev\n",
		"--timeout=off --timeout=9999d": "2 drill: invalid value \"9999d\" for --timeout: want a time of at most 31 days, as in 30s or 2m, or off" + help,
	} {
		var got string
		c := &cobra.Command{Use: "drill"}
		depth := c.Flags().IntP("depth", "d", 0, "so many `METRES`")
		steps := c.Flags().StringP("steps", "s", "", "these `STEPS`")
		c.Flags().Lookup("steps").NoOptDefVal = "all"
		size := c.Flags().StringP("size", "z", "", "a `SIZE`")
		me := c.Flags().BoolP("me", "m", false, "mine")
		c.RunE = func(_ *cobra.Command, args []string) error {
			got = fmt.Sprintf("depth=%d steps=%s size=%s me=%t %v", *depth, *steps, *size, *me, args)
			return nil
		}
		var out bytes.Buffer
		if code := Run(Timeout(c), strings.Fields(line), &out, &out); got == "" {
			got = fmt.Sprint(code, " ", out.String())
		}
		if got != want {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
}

// TestWhoReadsItsOwnLine: pflag reads the lines of all but the two whose line goes on with another program's.
func TestWhoReadsItsOwnLine(t *testing.T) {
	var own []string
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if path == "../../../bin" { // what was built, and no part of the tree
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("DisableFlagParsing:")) {
			own = append(own, strings.TrimPrefix(path, "../../../"))
		}
		return err
	})
	if want := []string{"pkg/client/grun/command.go", "pkg/client/submit/submit.go"}; err != nil || !slices.Equal(own, want) {
		t.Errorf("%v, %v; want %v", own, err, want)
	}
}
