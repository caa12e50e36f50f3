package container

import (
	"slices"
	"strings"
	"testing"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"debian":                               "docker://docker.io/library/debian:latest",
		"debian:12":                            "docker://docker.io/library/debian:12",
		"docker://debian:12":                   "docker://docker.io/library/debian:12",
		"me/tool":                              "docker://docker.io/me/tool:latest",
		"nvcr.io/nvidia/pytorch:24.01-py3":     "docker://nvcr.io/nvidia/pytorch:24.01-py3",
		"nvcr.io#nvidia/pytorch:24.01-py3":     "docker://nvcr.io/nvidia/pytorch:24.01-py3",
		"docker://nvcr.io#nvidia/pytorch":      "docker://nvcr.io/nvidia/pytorch:latest",
		"localhost/lab":                        "docker://localhost/lab:latest",
		"localhost:5000/lab:A_1":               "docker://localhost:5000/lab:A_1",
		"registry:5000#lab":                    "docker://registry:5000/lab:latest",
		"debian@" + digest:                     "docker://docker.io/library/debian@" + digest,
		"debian:12@" + digest:                  "docker://docker.io/library/debian@" + digest,
		"/images/torch":                        "/images/torch",
		"dir:/images/torch/":                   "/images/torch",
		"/images/torch.sqsh":                   "/images/torch.sqsh",
		"dir:/images/torch.sqsh":               "/images/torch.sqsh",
		"/images/torch.sif":                    "/images/torch.sif",
		"docker-archive:/images/torch.tar":     "docker-archive:/images/torch.tar",
		"oci-archive:/images/torch.tar":        "oci-archive:/images/torch.tar",
		"":                                     "!is no name",
		"Debian":                               "!is no name",
		"images/../torch":                      "!is no name",
		"debian:":                              "!is no name",
		"debian:a b":                           "!is no name",
		"debian@sha256:12":                     "!is no name",
		"nvcr.io":                              "!a host without a name",
		"-debian":                              "!is no name",
		"--root=/":                             "!is no name",
		"-x.io#debian":                         "!is no name",
		"me@nvcr.io#nvidia/pytorch":            "!credentials are not named",
		"library://lab":                        "!images of library:// are not known",
		"dir:images":                           "!want an absolute path",
		"docker-archive:torch.tar":             "!want an absolute path",
		"/images/torch.tar":                    "!may be packed in several ways",
		"a/" + strings.Repeat("a", 1024):       "!is no name",
		"debian:" + strings.Repeat("a", 129):   "!is no name",
		"docker://docker-archive:/x":           "!is no name",
		"nvcr.io/nvidia/pytorch;rm -rf /:1":    "!is no name",
		"nvcr.io/nvidia/pytorch:$(id)":         "!is no name",
		"docker://nvcr.io/nvidia/pytorch:1\n2": "!is no name",
	} {
		m, err := Parse(text)
		got := m.String()
		if err != nil {
			got = "!" + err.Error()
		}
		if refused := strings.HasPrefix(want, "!"); refused != (err != nil) || refused && !strings.Contains(got, want[1:]) || !refused && got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if err != nil || strings.HasPrefix(text, "dir:") {
			continue
		}
		if again, err := Parse(got); err != nil || again != m {
			t.Errorf("%q is read again as %+v, %v, not %+v", got, again, err, m)
		}
	}
}

// TestCommandLines: what drivers are run with, by their public documentation (podman(1), enroot's doc/cmd, apptainer
// build). enroot and apptainer are not in Debian: nothing here runs them.
func TestCommandLines(t *testing.T) {
	const pod = "podman --log-level=fatal --root /s/podman --runroot run --storage-driver=overlay --storage-opt=overlay.ignore_chown_errors=true --cgroup-manager=cgroupfs --events-backend=none "
	const apt = "APPTAINER_TMPDIR=/s APPTAINER_CACHEDIR=/s/cache apptainer --silent build --sandbox --fix-perms --force /s/root "
	apptainers := func(name string) []string {
		return []string{apt + name, `sh -c test ! -f "$1" || cat "$1" sh /s/root/.singularity.d/env/10-docker2singularity.sh`}
	}
	tidy := []string{"find /s/root ( -type b -o -type c ) -delete", "find /s/root -type f -perm /6000 -exec chmod ug-s {} +"}
	const enr = "ENROOT_DATA_PATH=/s ENROOT_TEMP_PATH=/s ENROOT_CACHE_PATH=/s/cache ENROOT_RUNTIME_PATH=/s/run enroot "
	rest := []string{
		pod + "image inspect --format {{.Digest}} {{json .Config.Env}} {ID}",
		pod + "create --quiet --pull=never --network=none --name=unpack {ID} /",
		pod + "export --output /s/root.tar unpack",
		"tar --extract --no-same-owner --exclude=dev/* --file /s/root.tar --directory /s/root",
	}
	podmans := func(name string) []string { return append([]string{pod + "pull --quiet " + name}, rest...) }
	create := func(file string) []string {
		return []string{enr + "create --name root " + file, `sh -c test ! -f "$1" || cat "$1" sh /s/root/etc/environment`}
	}
	enroots := func(name string) []string {
		return append([]string{enr + "import --output /s/image.sqsh " + name}, create("/s/image.sqsh")...)
	}
	lines := 0
	for _, x := range []struct {
		driver, image string
		want          []string
	}{
		{"podman", "debian:12", podmans("docker://docker.io/library/debian:12")},
		{"podman", "nvcr.io#nvidia/pytorch:24.01-py3", podmans("docker://nvcr.io/nvidia/pytorch:24.01-py3")},
		{"podman", "quay.io/lab/tool@" + digest, podmans("docker://quay.io/lab/tool@" + digest)},
		{"podman", "docker-archive:/i/x.tar", podmans("docker-archive:/i/x.tar")},
		{"podman", "oci-archive:/i/x y.tar", podmans("oci-archive:/i/x y.tar")},
		{"podman", "/i/x.sqsh", nil}, {"podman", "/i/x.sif", nil}, {"podman", "/i/x", nil},
		{"enroot", "debian:12", enroots("docker://registry-1.docker.io#library/debian:12")},
		{"enroot", "debian", enroots("docker://registry-1.docker.io#library/debian:latest")},
		{"enroot", "me/tool:1.2", enroots("docker://registry-1.docker.io#me/tool:1.2")},
		{"enroot", "docker://docker.io/library/debian:12", enroots("docker://registry-1.docker.io#library/debian:12")},
		{"enroot", "nvcr.io#nvidia/pytorch:24.01-py3", enroots("docker://nvcr.io#nvidia/pytorch:24.01-py3")},
		{"enroot", "nvcr.io/nvidia/nemo/curator:25", enroots("docker://nvcr.io#nvidia/nemo/curator:25")},
		{"enroot", "docker://localhost:5000/lab", enroots("docker://localhost:5000#lab:latest")},
		{"enroot", "registry.lab:5000#ml/train:A_1", enroots("docker://registry.lab:5000#ml/train:A_1")},
		{"enroot", "quay.io/lab/tool@" + digest, enroots("docker://quay.io#lab/tool:" + digest)},
		{"enroot", "debian:12@" + digest, enroots("docker://registry-1.docker.io#library/debian:" + digest)},
		{"enroot", "/i/x.sqsh", create("/i/x.sqsh")},
		{"enroot", "/i/-n.squashfs", create("/i/-n.squashfs")},
		{"enroot", "/i/x.sif", nil}, {"enroot", "docker-archive:/i/x.tar", nil}, {"enroot", "oci-archive:/i/x.tar", nil}, {"enroot", "/i/x", nil},
		{"apptainer", "debian:12", apptainers("docker://docker.io/library/debian:12")},
		{"apptainer", "debian", apptainers("docker://docker.io/library/debian:latest")},
		{"apptainer", "me/tool:1.2", apptainers("docker://docker.io/me/tool:1.2")},
		{"apptainer", "docker://docker.io/library/debian:12", apptainers("docker://docker.io/library/debian:12")},
		{"apptainer", "nvcr.io#nvidia/pytorch:24.01-py3", apptainers("docker://nvcr.io/nvidia/pytorch:24.01-py3")},
		{"apptainer", "nvcr.io/nvidia/nemo/curator:25", apptainers("docker://nvcr.io/nvidia/nemo/curator:25")},
		{"apptainer", "docker://localhost:5000/lab", apptainers("docker://localhost:5000/lab:latest")},
		{"apptainer", "registry.lab:5000#ml/train:A_1", apptainers("docker://registry.lab:5000/ml/train:A_1")},
		{"apptainer", "quay.io/lab/tool@" + digest, apptainers("docker://quay.io/lab/tool@" + digest)},
		{"apptainer", "/i/x.sif", apptainers("/i/x.sif")},
		{"apptainer", "docker-archive:/i/x.tar", apptainers("docker-archive:/i/x.tar")},
		{"apptainer", "oci-archive:/i/x.tar", apptainers("oci-archive:/i/x.tar")},
		{"apptainer", "/i/x.sqsh", nil}, {"apptainer", "/i/x", nil},
	} {
		m, err := Parse(x.image)
		if err != nil {
			t.Fatal(err)
		}
		d := DriverOf(x.driver)
		if d.Takes(m.Kind) != (x.want != nil) {
			t.Errorf("%s takes %s: %t", x.driver, x.image, d.Takes(m.Kind))
		}
		if x.want == nil {
			continue
		}
		var got []string
		for _, s := range d.Import(m, Stage{"/s", true}) {
			got = append(got, strings.Join(append(slices.Clone(s.Env), s.Args...), " "))
		}
		if x.driver != "podman" {
			lines += len(got) - len(tidy)
		}
		if !slices.Equal(got, append(slices.Clone(x.want), tidy...)) {
			t.Errorf("%s %s:\n%s\nwant\n%s", x.driver, x.image, strings.Join(got, "\n"), strings.Join(x.want, "\n"))
		}
	}
	if lines < 40 {
		t.Errorf("%d command lines of enroot and apptainer", lines)
	}
	m, _ := Parse("debian:12")
	if got := strings.Join(DriverOf("podman").Ask(m, Stage{"/s", true}), " "); got != pod+"manifest inspect docker.io/library/debian:12" {
		t.Errorf("asked by %s", got)
	}
	if got := strings.Join(DriverOf("podman").Ask(m, Stage{"/s", false}), " "); !strings.Contains(got, "--storage-driver=vfs --storage-opt=vfs.ignore_chown_errors=true ") {
		t.Errorf("without overlays it is asked by %s", got)
	}
	for name, want := range map[string][2]string{"podman": {"podman --version", "podman version 4.3.1\n"}, "enroot": {"enroot version", "4.3.1\n"}, "apptainer": {"apptainer --version", "apptainer version 4.3.1\n"}} {
		if got := strings.Join(DriverOf(name).Version(), " "); got != want[0] || ReadVersion(want[1]) != "4.3.1" {
			t.Errorf("%s is asked for its version by %s, which is read as %q", name, got, ReadVersion(want[1]))
		}
	}
	if ReadVersion("\n") != "" {
		t.Error("a version of nothing")
	}
	if DriverOf("enroot").Ask(m, Stage{}) != nil || DriverOf("docker") != nil {
		t.Error("enroot can't be asked, and docker is no driver")
	}
}

func TestManifest(t *testing.T) {
	for text, want := range map[string]Content{
		`{"config":{"digest":"` + digest + `"},"layers":[{"size":3},{"size":4},{"size":-9}]}`:                                                                                 {ID: digest, Size: 7},
		`{"manifests":[{"digest":"sha256:1","platform":{"architecture":"amd64","os":"linux"}},{"digest":"` + digest + `","platform":{"architecture":"amd64","os":"linux"}}]}`: {Then: digest},
		`{"manifests":[{"digest":"` + digest + `","platform":{"architecture":"arm64","os":"linux"}}]}`:                                                                        {},
		`{"manifests":[{"digest":"` + digest + `","platform":{"architecture":"amd64","os":"windows"}}]}`:                                                                      {},
		`{}`: {}, `no json`: {}, `{"config":{"digest":"x"}}`: {},
	} {
		if got, err := ReadManifest([]byte(text), "amd64"); got != want || (err == nil) != (want != Content{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if d, env, err := ReadConfig(digest + ` ["A=1","B=x y"]` + "\n"); err != nil || d != digest || !slices.Equal(env, []string{"A=1", "B=x y"}) {
		t.Errorf("%s %q %v", d, env, err)
	}
	if d, env, err := ReadConfig(digest + " null\n"); err != nil || d != digest || len(env) != 0 {
		t.Errorf("%s %q %v", d, env, err)
	}
	for _, bad := range []string{"", digest, "x []", "Error: no such image"} {
		if _, _, err := ReadConfig(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestFeatures(t *testing.T) {
	for text, want := range map[string]string{"/i": "container-dir", "debian": "container-podman container-enroot container-apptainer", "/i/x.sqsh": "container-enroot",
		"/i/x.sif": "container-apptainer", "docker-archive:/i/x.tar": "container-podman container-apptainer"} {
		m, err := Parse(text)
		if got := strings.Join(m.Features(), " "); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// TestReadExports: lines as apptainer's build writes them, and others, of which nothing is taken.
func TestReadExports(t *testing.T) {
	got := ReadExports("#!/bin/sh\nexport PATH=\"/opt/x/bin:/bin\"\nexport LAB=\"${LAB:-\"a b=c\"}\"\nexport ODD=\"${ODD:-\"\\$HOME \\\"q\\\" \\`x\\` \\\\n\"}\"\n" +
		"export EMPTY=\"${EMPTY:-\"\"}\"\nexport UNSET=\"${UNSET:-}\"\nexport TWO=\"${TWO:-\"first\nsecond\"}\"\nLAB=other\nexport X=$(id)\nexport =\"x\"\n")
	want := []string{"PATH=/opt/x/bin:/bin", "LAB=a b=c", "ODD=$HOME \"q\" `x` \\n", "EMPTY="}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
