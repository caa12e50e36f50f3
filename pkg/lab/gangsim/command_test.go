package gangsim

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/client/program"
)

var update = flag.Bool("update", false, "write the expected output into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gangsim": func() { program.Main(New()) }})
}

// TestScripts runs the command as people do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true})
}

// TestManPage holds the page to the options.
func TestManPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "man", "gangsim.1"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(strings.ReplaceAll(string(b), `\-`, "-"), "")
	cmd := New()
	program.Prepare(cmd)
	want, got := map[string]bool{}, map[string]bool{}
	program.Each(cmd, func(c *cobra.Command) { c.Flags().VisitAll(func(f *pflag.Flag) { want[f.Name] = true }) })
	for _, m := range regexp.MustCompile(`(?m)^\.TP\n--([\w-]+)`).FindAllStringSubmatch(text, -1) {
		got[m[1]] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("man/gangsim.1 and the options differ (-options +page):\n%s", diff)
	}
	if !strings.Contains(text, "gangsim - "+cmd.Short) {
		t.Errorf("man/gangsim.1 does not open with %q", cmd.Short)
	}
}
