package submit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gangd/pkg/client/program"
)

// malformed is one thing that must be refused before anything is sent: exact text, exit
// status, nothing queued. DIR in text stands for the directory of the case.
type malformed struct {
	name   string
	script string // text of job.sh, empty: no such file
	args   string // cut at blanks; @ stands for job.sh
	want   string
	exit   int
}

const sh = "#!/bin/sh\n"

const timeForms = "write 90 (minutes), 90m, 12:00:00, 3-00:00:00 or 1d12h"

const arrayForms = "write --array=0-15, --array=0-15%4 (four at a time), --array=1,3,5-9 or --array=0-100:10"

var malformedCases = []malformed{
	// Words that are not options.
	{"unknown directive", sh + "#GANG --gpu-per-rank=1\ntrue\n", "@", "job.sh:2:7: unknown option --gpu-per-rank; did you mean --gpus-per-rank?", 1},
	{"unknown directive of sbatch", sh + "#SBATCH -N1 --tim=3 --wallclock=1\n", "@", "job.sh:2:13: ambiguous option --tim; it may be --time, --time-min", 1},
	{"unknown option", sh, "--szie=3 @", "unknown option --szie; did you mean --size?", 2},
	{"unknown short option", sh, "-Z @", "unknown option -Z; gsubmit --help lists the options", 2},
	{"a word in a directive", sh + "#GANG --size=4 four\n", "@", `job.sh:2:16: unexpected word "four"; options begin with - or --, a comment with #, and blanks in a value need quotes`, 1},
	{"an open quote", sh + "#SBATCH -J \"my job\n", "@", "job.sh:2:12: the quote is never closed; close it on the same line", 1},
	{"no value", sh + "#GANG --size\n", "@", "job.sh:2:7: --size needs a value; write --size=N", 1},
	{"the script taken for a value", sh, "--time @", "--time=job.sh: not a time; " + timeForms, 2},
	{"an empty command", sh, "--wrap=", "--wrap=: the command is empty; write --wrap='python train.py'", 2},
	{"a value too many", sh, "--hold=yes @", "--hold takes no value; write --hold", 2},
	{"another account for a component", sh + "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2 -A b\n", "@",
		"job.sh:4:13: component 1: --account=b: the components are one gang, which has one --account; write it for component 0 alone", 1},
	{"an array of components", sh, "-a 1-2 -n1 : -n2 @", "--array=1-2: a heterogeneous job has components instead; leave it out, or submit without \":\" and hetjob", 2},
	{"what belongs on the line", sh + "#GANG --wrap=date\n", "@", "job.sh:2:7: --wrap belongs on the command line; remove it here", 1},
	{"refused option of sbatch", sh + "#SBATCH --container=x.sif\n", "@", "job.sh:2:9: --container=x.sif: OCI bundles are not run: their config.json is an OCI runtime's to obey, and none is used here; use --container-image=BUNDLE/rootfs, with --container-mounts", 1},
	{"no environment", sh + "#SBATCH --export-file=gone\n", "@", "job.sh:2:9: --export-file=gone: no such file or directory", 1},
	{"for somebody else", sh + "#SBATCH --uid=root\n", "@", "job.sh:2:9: --uid=root: only root submits for somebody else; run it as that user: sudo -u USER gsubmit", 1},
	{"by another group", sh + "#SBATCH --gid=0\n", "@", "job.sh:2:9: --gid=0: only root submits for somebody else; run it as that user: sudo -u USER gsubmit", 1},
	{"for nobody known", sh + "#SBATCH --uid=nosuchuser\n", "@", "job.sh:2:9: --uid=nosuchuser: there is no such user here", 1},

	// Roles.
	{"role without a number", sh, "--role=worker @", "--role=worker: how many ranks role worker has is missing; write worker:1", 2},
	{"role of no ranks", sh + "#GANG --role=worker:0\n", "@", "job.sh:2:7: --role=worker:0: the ranks of role worker: less than 1; write a number from 1 to 65536", 1},
	{"role of bad name", sh, "--role=Worker:1 @", `--role=Worker:1: "Worker" is not a name for a role; write lower-case letters, digits and -, a letter first, at most 32: worker, data-loader`, 2},
	{"role twice", sh + "#GANG --role=a:1 --role=b:1\n#GANG --role=a:2\n", "@", "job.sh:3:7: --role=a:2: role a is named twice; give each role one --role with all its ranks", 1},
	{"role option", sh, "--role=worker:1,cpu=4 @", `--role=worker:1,cpu=4: unknown option "cpu" of role worker; did you mean cpus? a role has gpus-per-rank, vram, cpus, mem, constraint, ends`, 2},
	{"role option far off", sh, "--role=worker:1,partition=x @", `--role=worker:1,partition=x: unknown option "partition" of role worker; a role has gpus-per-rank, vram, cpus, mem, constraint, ends`, 2},
	{"role option without value", sh, "--role=worker:1,vram @", "--role=worker:1,vram: vram of role worker needs a value; write --role=worker:3, or --role=worker:3,gpus-per-rank=1,vram=40G,cpus=4,mem=8G", 2},
	{"role of bad figure", sh, "--role=worker:1,mem=8X @", `--role=worker:1,mem=8X: mem=8X of role worker: unknown unit "X"; write 24G, 24GB, 1.5T, 512M or a plain number of MiB`, 2},
	{"role ends what", sh, "--role=worker:1,ends=job @", "--role=worker:1,ends=job: ends=job of role worker: unknown value; write ends=gang: when all ranks of the role are done the gang is done, and the others are stopped", 2},
	{"roles and another size", sh, "--size=5 --role=a:1 --role=b:3 @", "--size=5: the roles come to 4 ranks; leave --size out, or make them agree", 2},
	{"roles and nodes", sh + "#GANG --role=a:1\n", "--nodes=2 @", "--nodes=2 does not go with --role=a:1 (job.sh:2:7); roles count ranks; leave it out", 2},
	{"roles and memory by node", sh, "--role=a:1 --mem=4G @", "--mem=4G does not go with --role=a:1; write --mem-per-rank, or mem in the role", 2},
	{"roles in a batch", sh, "--role=a:1 --launch=batch @", "--launch=batch: the ranks of roles run the script each; leave --launch out", 2},
	{"vram on no card of a role", sh, "--role=a:1,gpus=0,vram=4G @", "--role=a:1,gpus=0,vram=4G: role a asks for VRAM on no card; leave one of them out", 2},

	// Sizes and numbers.
	{"size 0", sh, "--size=0 @", "--size=0: less than 1; write a number from 1 to 65536", 2},
	{"size -5", sh + "#GANG --size=-5\n", "@", "job.sh:2:7: --size=-5: less than 1; write a number from 1 to 65536", 1},
	{"size 10^9", sh, "--size=1000000000 @", "--size=1000000000: more than 65536; write a number from 1 to 65536", 2},
	{"size beyond integers", sh, "--size=99999999999999999999 @", "--size=99999999999999999999: more than 65536; write a number from 1 to 65536", 2},
	{"size of words", sh, "--size=four @", "--size=four: not a whole number; write a number from 1 to 65536", 2},
	{"ranks by nodes", sh, "-N60000 --ntasks-per-node=2 @", "--nodes=60000: asks for 120000 ranks, at most 65536 are accepted; ask for fewer", 2},
	{"size suffix", sh, "--mem=24X @", `--mem=24X: unknown unit "X"; write 24G, 24GB, 1.5T, 512M or a plain number of MiB`, 2},
	{"vram without unit", sh + "#GANG --vram=40\n", "@", "job.sh:2:7: --vram=40: 40M is less than a card needs for any program; did you mean 40G?", 1},

	// Times and signals.
	{"bad time", sh + "#SBATCH --time=soon\n", "@", "job.sh:2:9: --time=soon: not a time; " + timeForms, 1},
	{"negative time", sh, "--time=-5 @", "--time=-5: a time can't be negative; " + timeForms, 2},
	{"bad signal", sh, "--signal=USR3@60 @", `--signal=USR3@60: there is no signal "USR3"; did you mean USR1?`, 2},
	{"grace-max below the grace", sh, "--grace=30 --grace-max=10 @", "--grace-max=10: it is shorter than the grace (30s) of --grace=30; write a longer --grace-max, or leave it out", 2},
	{"checkpoint of another kind", sh, "--checkpoint=60 @", "--checkpoint=60: not known; write --checkpoint=drain, or leave it out to take them at any time", 2},
	{"grace beyond the lead", sh, "--signal=TERM@10 --grace=30 @", "--grace=30: the grace is longer than the lead (10s) of --signal=TERM@10; saving belongs before the stop signal: write --signal=TERM@30 or a shorter --grace", 2},

	// Arrays.
	{"array backwards", sh, "--array=5-1 @", `--array=5-1: the range "5-1" runs backwards; write 1-5`, 2},
	{"array too large", sh, "-a 0-99999999 @", "--array=0-99999999: asks for 100000000 elements, at most 10000 are accepted; split it into several arrays", 2},
	{"array limit 0", sh, "-a 0-3%0 @", "--array=0-3%0: the limit behind % must be 1 or more; " + arrayForms, 2},
	{"array of words", sh + "#SBATCH -a 1-x\n", "@", `job.sh:2:9: --array=1-x: "1-x" is not an index or a range of indices; ` + arrayForms, 1},

	// Contradictions.
	{"cards twice", sh + "#GANG --gpus-per-rank=3\n#GANG --gpus-per-node=4\n", "@", "job.sh:3:7: --gpus-per-node=4 contradicts --gpus-per-rank=3 (job.sh:2:7): 4 is no multiple of 3; keep one of them", 1},
	{"share without vram", sh, "--share --gpus=1 @", "--share: needs --vram, or there is nothing to tell whether gangs fit on a card together; write --share --vram=SIZE (sbatch's old --share is --oversubscribe)", 2},
	{"requeue and not", sh, "--requeue --no-requeue @", "--no-requeue contradicts --requeue; keep one of them", 2},
	{"retries and no requeue", sh + "#GANG --no-requeue --max-retries=2\n", "@", "job.sh:2:20: --max-retries=2 contradicts --no-requeue (job.sh:2:7); keep one of them", 1},
	{"memory twice", sh, "--mem=4G --mem-per-cpu=1G @", "--mem-per-cpu=1G contradicts --mem=4G; keep one of them", 2},
	{"size and ntasks", sh, "--size=4 -n4 @", "--ntasks=4 contradicts --size=4; keep one of them", 2},
	{"share and exclusive", sh, "--share --exclusive --vram=4G @", "--share contradicts --exclusive; keep one of them", 2},
	{"uneven cards", sh, "--size=2 --gpus=7 @", "--gpus=7: 7 cards can't be shared out evenly over 2 ranks; write --gpus=6 or --gpus=8, or --gpus-per-node=N", 2},
	{"ranks that do not fit", sh, "-N2 -n12 --ntasks-per-node=4 @", "--ntasks-per-node=4: 12 ranks need 3 nodes so, and --nodes=2 allows 2; ask for --nodes=3 or for more ranks on each node", 2},
	{"vram on no card", sh, "--gpus=0 --vram=4G @", "--vram=4G: asks for VRAM on no card; ask for cards: --gpus-per-rank=1", 2},

	// The script itself.
	{"NUL bytes", sh + "echo \x00\n", "@", "job.sh:2: the script holds a NUL byte; it is not a text file; check what wrote it", 1},
	{"10 MB", sh + strings.Repeat("#\n", 5<<20), "@", "job.sh: the script is larger than 4M; keep data in files and have the script read them", 1},
	{"CR LF", "#!/bin/sh\r\ntrue\r\n", "@", `job.sh:1: the line ends in CR LF, as DOS and Windows write it; convert the script: sed -i 's/\r$//' job.sh`, 1},
	{"no shebang", "python train.py\n", "@", "job.sh:1: this is not a script: it does not begin with #!; make the first line an interpreter, for instance #!/bin/bash", 1},
	{"empty shebang", "#! \ntrue\n", "@", "job.sh:1: #! names no interpreter; for instance #!/bin/bash", 1},
	{"byte order mark", "\xef\xbb\xbf#!/bin/sh\n", "@", `job.sh:1: a byte order mark stands before #!; remove it: sed -i '1s/^\xef\xbb\xbf//' job.sh`, 1},
	{"UTF-16", "\xff\xfe#\x00!\x00", "@", "job.sh:1: the script is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 job.sh", 1},
	{"program", "\x7fELF\x02\x01\x01", "@", "job.sh: this is a program, not a script; run it from one: gsubmit --wrap='job.sh'", 1},
	{"missing file", sh, "jbo.sh", "jbo.sh: no such file; did you mean job.sh?", 1},
	{"directory as script", sh, "dir", "dir: this is a directory; name the script in it", 1},
	{"unreadable script", sh, "secret.sh", "secret.sh: you can't read it; ask its owner for: chmod +r secret.sh", 1},
	{"empty stdin", sh, "", "stdin: the script is empty; its first line must be an interpreter, for instance #!/bin/bash", 1},
	{"script behind wrap", sh, "--wrap=date @", `--wrap is the whole command, and "job.sh" follows it; put everything into the quotes: --wrap='COMMAND ARG'`, 2},
	{"empty wrap", sh, "--wrap= @", "--wrap=: the command is empty; write --wrap='python train.py'", 2},

	// Names and environment.
	{"name with newline", sh, "-J a\nb @", `--job-name=a\nb: holds the control character '\n'; write it on one line, with printable characters`, 2},
	{"export garbage", sh, "--export=ALL,1X=2 @", `--export=ALL,1X=2: "1X" is not the name of a variable; write --export=ALL, --export=NONE, --export=PATH,HOME or --export=ALL,SEED=3`, 2},

	// Places.
	{"output into a forbidden directory", sh + "#GANG -o closed/logs/%j.out\n", "@", "job.sh:2:7: --output=closed/logs/%j.out: you can't write in DIR/closed (permission denied); choose a directory of yours: --output=DIR/gang-%j.out", 1},
	{"output under a file", sh, "-o job.sh/out @", "--output=job.sh/out: DIR/job.sh is a file, and the output needs it to be a directory; choose another directory, or remove the file", 2},
	{"output is a directory", sh, "-o dir @", "--output=dir: DIR/dir is a directory; name a file in it: --output=dir/gang-%j.out", 2},
	{"output not writable", sh, "-e readonly.log @", "--error=readonly.log: DIR/readonly.log can't be written (permission denied); choose another file, or remove this one", 2},
	{"variable in a directive", sh + "#SBATCH -o $HOME/x.out\n", "@", `job.sh:2:9: --output=$HOME/x.out: variables and ~ are not expanded in a directive; write the path out, or give it on the command line: gsubmit --output="$HOME/x.out" job.sh`, 1},
	{"missing input", sh, "-i none.txt @", "--input=none.txt: DIR/none.txt is not there; check the name: ls DIR", 2},
	{"missing directory", sh, "-D none @", "--chdir=none: DIR/none is not there; make it: mkdir -p DIR/none", 2},
	{"file as directory", sh, "-D job.sh @", "--chdir=job.sh: DIR/job.sh is not a directory; name the directory: DIR", 2},
	{"forbidden directory", sh, "-D sealed @", "--chdir=sealed: DIR/sealed can't be entered (permission denied); choose a directory of yours", 2},
}

// TestMalformed runs every case as a person without privileges: root may write anywhere,
// so as root the test runs itself again as nobody.
func TestMalformed(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	for _, c := range malformedCases {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c malformed) run(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("GANG_DIR", dir) // no controller is there: exit 4 would say that one was asked
	for name, mode := range map[string]os.FileMode{"dir": 0o755, "closed": 0o555, "sealed": 0o000} {
		must(t, os.Mkdir(name, 0o755))
		must(t, os.Chmod(name, mode))
	}
	must(t, os.WriteFile("job.sh", []byte(c.script), 0o644))
	must(t, os.WriteFile("secret.sh", []byte(sh), 0o000))
	must(t, os.WriteFile("readonly.log", nil, 0o444))
	stdin, err := os.Open(os.DevNull)
	must(t, err)
	defer stdin.Close()
	defer func(f *os.File) { os.Stdin = f }(os.Stdin)
	os.Stdin = stdin

	var args []string
	for _, a := range strings.FieldsFunc(c.args, func(r rune) bool { return r == ' ' }) {
		args = append(args, strings.Replace(a, "@", "job.sh", map[bool]int{true: 1}[a == "@"]))
	}
	var out, errs bytes.Buffer
	exit := program.Run(New(), args, &out, &errs)
	want := "gsubmit: " + strings.ReplaceAll(c.want, "DIR", dir) + "\n"
	if errs.String() != want || exit != c.exit || out.Len() > 0 {
		t.Errorf("exit %d, want %d\n got %q\nwant %q\nstdout %q", exit, c.exit, errs.String(), want, out.String())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asNobody runs this test in a child with another user.
func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("", "nobody")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o777))
	text, err := os.ReadFile(os.Args[0])
	must(t, err)
	bin := filepath.Join(dir, "test")
	must(t, os.WriteFile(bin, text, 0o755))
	cmd := exec.Command(bin, "-test.run=^TestMalformed$")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// TestTerminal: a script is not waited for at a terminal.
func TestTerminal(t *testing.T) {
	tty, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	defer tty.Close()
	defer func(f *os.File) { os.Stdin = f }(os.Stdin)
	os.Stdin = tty
	var out, errs bytes.Buffer
	exit := program.Run(New(), []string{"--size=2"}, &out, &errs)
	want := "gsubmit: no script given; name one, gsubmit job.sh, or give a command: gsubmit --wrap='COMMAND'\n"
	if exit != 2 || errs.String() != want {
		t.Errorf("exit %d\n got %q\nwant %q", exit, errs.String(), want)
	}
}

// TestMalformedAreForty: the list is what the manual's promise of clear refusals rests on.
func TestMalformedAreForty(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range malformedCases {
		seen[fmt.Sprint(c.script, c.args)] = true
	}
	if len(seen) < 40 {
		t.Errorf("%d different cases", len(seen))
	}
}

// TestKernelsDirectories: access(2) lets root write where nobody can make a file.
func TestKernelsDirectories(t *testing.T) {
	if !kernels("/proc") || !kernels("/proc/self") || kernels(t.TempDir()) {
		t.Errorf("/proc %v, /proc/self %v, a directory %v", kernels("/proc"), kernels("/proc/self"), kernels(t.TempDir()))
	}
}
