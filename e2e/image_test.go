package e2e

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/lab/registry"
	"gangd/pkg/lab/tool"
)

// debian makes an image by debootstrap, with what is needed to be told from another.
func debian(t *testing.T) string {
	t.Helper()
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("a minute: run by GANG_E2E_CHAOS=1")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	tool.Need(t, "debootstrap")
	root := registry.Open(t, t.TempDir())
	if out, err := exec.Command("debootstrap", "--variant=minbase", "bookworm", root).CombinedOutput(); err != nil {
		t.Skipf("no image of Debian can be had: %v %s", err, out[max(0, len(out)-300):])
	}
	return root
}

// lab is a small image of this machine's programs.
func lab(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	return registry.Tree(t, "lab", "bash", "cat", "sleep", "setsid", "touch", "mkdir")
}

// TestGangInAnImage: a gang in an unpacked image, and in one of a registry.
func TestGangInAnImage(t *testing.T) {
	t.Run("dir", func(t *testing.T) { root := lab(t); gangInAnImage(t, root, "lab", root, nil) })
	t.Run("podman", func(t *testing.T) {
		root, r := lab(t), registry.New(t)
		r.WithPodman(t)
		gangInAnImage(t, r.Name("1"), "lab", root, r)
	})
}

// TestGangInDebian is the same with a whole Debian.
func TestGangInDebian(t *testing.T) {
	root := debian(t)
	t.Run("dir", func(t *testing.T) { gangInAnImage(t, root, "debian", root, nil) })
	t.Run("podman", func(t *testing.T) {
		r := registry.New(t)
		r.WithPodman(t)
		gangInAnImage(t, r.Name("1"), "debian", root, r)
	})
}

// importsFor bounds the time in which four nodes of one busy machine each unpack a whole Debian.
const importsFor = 5 * time.Minute

// gangInAnImage has a gang of 4 members with 8 ranks each run in an image: what they see, that notices reach them,
// that checkpoints are handed over, that the image is imported once a node, that a second attempt runs the same bytes
// though the tag was moved, and that nothing of it is left.
func gangInAnImage(t *testing.T, image, id, root string, r *registry.Registry) {
	tool.Need(t, "pgrep")
	digest := ""
	args := []string{"--nodes=4", "--gpus=8x80G", "--set", "cpus=8", "--set", "containers=true"}
	if r != nil {
		digest = r.Push(t, "1", root, "LAB=image")
		args = append(args, "--set", "container_driver=podman")
	}
	c := start(t, args...)
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "set"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const tasks, each = 32, 7
	mark := fmt.Sprint(900000 + os.Getpid()) // seconds that the escapees sleep
	script := c.script("job.sh", `#!/bin/bash
#GANG --size=32 --ranks-per-node=8 --gpus-per-rank=1 --requeue --signal=USR1@10 --grace=10
trap 'touch noticed.$GANG_EPOCH.$GANG_RANK; exit 0' USR1
had=$(gckpt get 2>/dev/null) || had=none
. /etc/os-release
host=; [ -e `+c.dir+`/run/gangd.pid ] && [ -e /root ] && host=host
cards=${CUDA_VISIBLE_DEVICES//[^,]/}
sock=; [ -S "$GANG_SOCKET" ] && sock=socket
echo $ID $UID ${CUDA_VISIBLE_DEVICES:0:3}$cards $sock $(cat /data/set && echo mounted) $LAB $had > fact.$GANG_EPOCH.$GANG_RANK
echo kept.$GANG_RANK | gckpt put - || echo lost > lost
for i in 1 2 3 4 5 6 `+fmt.Sprint(each)+`; do (setsid sleep `+mark+` &) & done
touch up.$GANG_EPOCH.$GANG_RANK
while :; do sleep 1000 & wait $!; done
`)
	have := func(what string) func() bool {
		return func() bool { names, _ := filepath.Glob(filepath.Join(c.tmp, what)); return len(names) == tasks }
	}
	fact := func(epoch, rank int) string {
		b, _ := os.ReadFile(filepath.Join(c.tmp, fmt.Sprintf("fact.%d.%d", epoch, rank)))
		return string(b)
	}
	left := func() int {
		out, _ := exec.Command("pgrep", "-c", "-f", "^sleep "+mark).Output() // status 1: none
		n := 0
		_, _ = fmt.Sscan(string(out), &n)
		return n
	}
	job := c.submit("--container-image="+image, "--container-mounts="+data+":/data:ro", script)
	c.client().Until(importsFor, "all ranks", have("up.1.*"))
	env := ""
	if r != nil {
		env = "image "
		if n := r.Layers(); n != 4 {
			t.Errorf("4 nodes with 8 ranks each fetched the layer %d times", n)
		}
	}
	for rank := range tasks {
		want := fmt.Sprintf("%s 0 GPU,,,,,,, socket mounted %s", id, env)
		if got := fact(1, rank); got != want+"none\n" {
			t.Fatalf("rank %d: %q, want %q", rank, got, want+"none\n")
		}
	}
	if n := left(); n != tasks*each {
		t.Errorf("%d of %d processes have escaped their ranks", n, tasks*each)
	}
	if j := c.job(job); j.ImageDigest != digest || j.Image == "" {
		t.Errorf("%s %s, want %s", j.Image, j.ImageDigest, digest)
	}
	if r != nil { // another image by the same name
		other := registry.Tree(t, "other", "bash")
		r.Push(t, "1", other)
	}
	c.must("gctl", "requeue", fmt.Sprint(job))
	c.until("notices", have("noticed.1.*"))
	c.until("the second attempt", have("up.2.*"))
	for rank := range tasks {
		if got, want := fact(2, rank), fmt.Sprintf("%s 0 GPU,,,,,,, socket mounted %skept.%d\n", id, env, rank); got != want {
			t.Fatalf("rank %d: %q, want %q", rank, got, want)
		}
	}
	if n := left(); n != tasks*each {
		t.Errorf("%d processes, %d are the second attempt's", n, tasks*each)
	}
	c.must("gcancel", "--now", fmt.Sprint(job))
	c.wait(job, api.JobCancelled)
	if n := left(); n != 0 {
		t.Errorf("%d of %d processes are left", n, tasks*each)
	}
	if _, err := os.Stat(filepath.Join(c.tmp, "lost")); err == nil {
		t.Error("a checkpoint was not taken")
	}
	said := image
	if r != nil {
		said += "@" + digest
	}
	acct, asJSON := c.must("gacct", fmt.Sprint(job)), c.must("gacct", "--json", fmt.Sprint(job))
	if n := len(slices.DeleteFunc(strings.Fields(acct), func(word string) bool { return word != said })); n != 2 {
		t.Errorf("gacct says %d times that an attempt ran in %s:\n%s", n, said, acct)
	}
	if want := `"container_image_digest": "` + digest + `"`; strings.Contains(asJSON, want) != (r != nil) {
		t.Errorf("gacct --json and %s:\n%s", want, asJSON)
	}
	if r == nil {
		return
	}
	if n := r.Layers(); n != 4 {
		t.Errorf("the layer was fetched %d times in two attempts", n)
	}
	if out := c.must("gctl", "show", "job", fmt.Sprint(job)); !strings.Contains(out, "ContainerImageDigest="+digest) {
		t.Errorf("gctl show job: %s", out)
	}
	if out := c.must("gctl", "show", "node", "n1"); !strings.Contains(out, "Containers=dir,podman ") {
		t.Errorf("gctl show node: %s", out)
	}
	// A broken image is refused before a rank runs, and charged to nobody.
	r.Push(t, "broken", registry.Tree(t, "broken", "bash"))
	r.Spoil("broken")
	job = c.submit("--container-image="+r.Name("broken"), "--size=2", "--ranks-per-node=1", c.script("b.sh", "#!/bin/bash\ntouch ran\n"))
	j := c.wait(job, api.JobFailed)
	if _, err := os.Stat(filepath.Join(c.tmp, "ran")); err == nil || !strings.Contains(j.Verdict, "container image: "+r.Name("broken")) {
		t.Errorf("a broken image: %s, ran: %v", j.Verdict, err == nil)
	}
}

// TestStepsImport: steps that want the same image wait for one import a node and run the same bytes for the life of their
// job, others start meanwhile, people see how far it is, and one that is cancelled leaves nothing behind.
func TestStepsImport(t *testing.T) {
	root, other, r := lab(t), registry.Tree(t, "other", "bash", "cat"), registry.New(t)
	r.WithPodman(t)
	digest := r.Push(t, "1", root)
	c := start(t, "--nodes=2", "--set", "cpus=8", "--set", "containers=true", "--set", "container_driver=podman")
	slurmNames(t, c)
	release := r.Hold()
	script := `#!/bin/bash
export PATH=` + filepath.Join(c.tmp, "slurm") + `:$PATH
task() { srun -N2 -n2 --ntasks-per-node=1 --overlap --container-image=$1 bash -c 'cat /etc/os-release; [ -e /root ] && echo outside; touch '$2 > $2.out 2>&1 & }
task ` + r.Name("1") + ` a
task ` + r.Name("1") + ` b
until [ -e begun ]; do sleep 0.05; done
srun -n1 -N1 --overlap touch beside
wait
task ` + r.Name("2") + ` c
wait; touch called.off
until [ -e moved ]; do sleep 0.05; done
task ` + r.Name("1") + ` d
wait
`
	id := c.submit("-N2", c.script("job.sh", script))
	job := fmt.Sprint(id)
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(c.tmp, name)); return err == nil }
	}
	waits := func(step string) func() bool {
		return func() bool {
			for line := range strings.Lines(c.must("gqueue", "-s", "-j", job)) {
				if f := strings.Fields(line); f[0] == job+"."+step && strings.Contains(line, " importing its image: ") && strings.Contains(line, " on n1, ") {
					return true
				}
			}
			return false
		}
	}
	c.until("word of the import of step 0", waits("0"))
	c.until("word of the import of step 1", waits("1"))
	c.create("begun")
	c.until("a step beside them", there("beside"))
	if there("a")() || there("b")() {
		t.Error("a step began without its image")
	}
	release()
	c.until("the first two steps", func() bool { return there("a")() && there("b")() })
	if n := r.Layers(); n != 2 {
		t.Errorf("two steps on two nodes fetched the layer %d times", n)
	}
	release = r.Hold()
	defer func() { release() }()
	r.Push(t, "2", other)
	c.until("word of the import of step 3", waits("3"))
	stages := func() int {
		all, _ := filepath.Glob(filepath.Join(c.dir, "*", "images", "stage.*"))
		deep, _ := filepath.Glob(filepath.Join(c.dir, "*", "*", "images", "stage.*"))
		return len(all) + len(deep)
	}
	if n := stages(); n != 2 {
		t.Errorf("%d imports are under way on two nodes", n)
	}
	c.must("gcancel", job+".3")
	c.until("the end of step 3", there("called.off"))
	c.until("its imports to be gone", func() bool { return stages() == 0 })
	release()
	r.Push(t, "1", other)
	c.create("moved")
	c.wait(id, api.JobCompleted)
	for _, name := range []string{"a", "b", "d"} {
		if got := c.file(name + ".out"); strings.Count(got, "ID=lab\n") != 2 || strings.Contains(got, "outside") {
			t.Errorf("step %s: %s", name, got)
		}
	}
	if there("c")() {
		t.Error("a cancelled step ran")
	}
	for _, s := range c.steps(id) {
		switch want := map[string]string{"0": "COMPLETED", "1": "COMPLETED", "2": "COMPLETED", "3": "CANCELLED", "4": "COMPLETED"}[s.StepID]; {
		case want != "" && string(s.State) != want:
			t.Errorf("step %s is %s, want %s", s.StepID, s.State, want)
		case s.Image == r.Name("1") && s.ImageDigest != digest:
			t.Errorf("step %s ran in %s, want %s", s.StepID, s.ImageDigest, digest)
		}
	}
	if out := c.must("gacct", "--json", job); strings.Count(out, `"container_image_digest": "`+digest+`"`) != 3 {
		t.Errorf("gacct does not say what three steps ran in:\n%s", out)
	}
}

// TestCredentialsStayTheUsers: what a user's node proves itself with to a registry is in no store, log, record or answer of
// ours, whether it is taken or not.
func TestCredentialsStayTheUsers(t *testing.T) {
	const user, right, wrong = "ada-of-the-lab", "s3cret-that-is-right", "s3cret-that-is-wrong"
	root, r, home := lab(t), registry.New(t), t.TempDir()
	r.Push(t, "1", root)
	r.User, r.Password = user, right
	r.WithPodman(t)
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{right, wrong}
	login := func(password string) {
		token := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		secrets = append(secrets, token)
		if err := os.MkdirAll(filepath.Join(home, ".config/containers"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".config/containers/auth.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Host(), token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "podman"), []byte("#!/bin/sh\nHOME="+home+" exec "+podman+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := unstarted(t, trial.Bin(t))
	c.setenv("PATH", home+":"+os.Getenv("PATH"))
	c.up("--nodes=1", "--set", "cpus=4", "--set", "containers=true", "--set", "container_driver=podman")
	said := ""
	for _, x := range []struct {
		password string
		end      api.JobState
	}{{wrong, api.JobCancelled}, {right, api.JobCompleted}} {
		login(x.password)
		job := c.submit("--container-image="+r.Name("1"), c.script("job.sh", "#!/bin/bash\ncat /etc/os-release\n"))
		if x.password == wrong {
			c.until("the registry's refusal", func() bool { return strings.Contains(c.story(job), "unauthorized") })
			c.must("gcancel", fmt.Sprint(job))
		}
		if j := c.wait(job, api.JobCancelled, api.JobCompleted, api.JobFailed); j.State != x.end {
			t.Errorf("with %s: %s %s", x.password, j.State, j.Verdict)
		}
		said += c.story(job) + c.must("gctl", "show", "job", fmt.Sprint(job), "--json") + c.must("gacct", "--json", fmt.Sprint(job))
	}
	// One who writes them into the name is told not to, and it is kept nowhere.
	if _, errs, code := c.run("gsubmit", "--container-image=docker://"+user+":"+right+"@"+r.Host()+"/lab/tool:1", c.script("in.sh", "#!/bin/bash\n")); code == 0 || !strings.Contains(errs, "is no name of an image") {
		t.Errorf("in the name: exit %d, %s", code, errs)
	}
	c.must("gangd", "dev", "--stop", "--dir="+c.dir) // all is written
	files := 0
	err = filepath.WalkDir(c.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files++
		for _, s := range secrets {
			if strings.Contains(string(b), s) {
				t.Errorf("%s has %s", path, s)
			}
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
	for _, s := range secrets {
		if strings.Contains(said, s) {
			t.Errorf("%s is told to everybody:\n%s", s, said)
		}
	}
}
