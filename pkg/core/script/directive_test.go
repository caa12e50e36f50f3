package script

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

func TestDirectives(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
		warn       []string
	}{
		{"several on a line, a blank or =", "#!/bin/sh\n#SBATCH --nodes=2 -t 10 -p a,b --mem 4G\n", []string{"--nodes=2", "--time=10", "--partition=a,b", "--mem=4G"}, nil},
		{"short forms", "#SBATCH -N2 -n 4 -J x -ofile -c=8 -HQ\n", []string{"--nodes=2", "--ntasks=4", "--job-name=x", "--output=file", "--cpus-per-task=8", "--hold", "--quiet"}, nil},
		{"comment behind", "#GANG --size=4 # four\n#SBATCH -t 1 #two\n#SBATCH --comment=a#b -n2\n#SBATCH --comment='a#b' -J a\\#b\n",
			[]string{"--size=4", "--time=1", "--comment=a", "--comment=a#b", "--job-name=a#b"}, nil},
		{"quotes", `#SBATCH --comment="two words" -J 'a "b"' --comment=a\ b --comment="a\"b" -o "sp\(0\)\ x" --comment='it\'s' -J abc\` + "\n",
			[]string{"--comment=two words", `--job-name=a "b"`, "--comment=a b", `--comment=a"b`, "--output=sp(0) x", "--comment=it's", "--job-name=abc"}, nil},
		{"off", "##SBATCH -N1\n# SBATCH -N2\n#GANGED -N3\n#sbatch -N4\n#SBATCH\n#GANG \t\n", nil, nil},
		{"tab and nothing between", "#SBATCH\t-N1\n#SBATCH-n2\n", []string{"--nodes=1", "--ntasks=2"}, nil},
		{"comments and blank lines do not end it", "#!/bin/sh\n\n# a comment\n   \n#GANG --size=2\n", []string{"--size=2"}, nil},
		{"CR LF", "#!/bin/sh\r\n#GANG --size=2\r\n", []string{"--size=2"}, nil},
		{"no newline at the end", "#GANG --size=2", []string{"--size=2"}, nil},
		{"behind the first command", "true\n#GANG --size=2\n#GANG -n1\n#GANG\n#GANG\n", nil, []string{
			"job.sh:2: not read: the directive stands behind the first command (line 1); move it above",
			"job.sh:3: not read: the directive stands behind the first command (line 1); move it above",
			"job.sh:4: not read: the directive stands behind the first command (line 1); move it above",
			"job.sh: 1 more directives behind the first command are not read"}},
		{"indented", " #GANG --size=2\n", nil, []string{"job.sh:1: not read: a directive begins in column 1; remove the blanks before it, or write ## to switch it off"}},
		{"optional values only behind =", "#SBATCH --nice --exclusive --requeue=crash\n", []string{"--nice", "--exclusive", "--requeue=crash"}, nil},
		{"a beginning that only one has", "#SBATCH --part=x --tasks-per=2\n", []string{"--partition=x", "--tasks-per-node=2"}, nil},
	} {
		s, warn, err := Directives("job.sh", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got, gotWarn []string
		for i := range s {
			got = append(got, s[i].String())
		}
		for _, w := range warn {
			gotWarn = append(gotWarn, w.String())
		}
		if d := cmp.Diff(c.want, got) + cmp.Diff(c.warn, gotWarn); d != "" {
			t.Errorf("%s: -want +got\n%s", c.name, d)
		}
	}
}

func FuzzDirectives(f *testing.F) {
	for _, s := range []string{"#!/bin/sh\n#GANG --size=4 -J 'a b' # c\ntrue\n", "#SBATCH -N2 -t 1-0\r\n", "#GANG --signal=B:USR1@60 \"", "#SBATCH --a=1-3%2 x\\",
		"#GANG --role=a:1,ends=gang --role='b:3,gpus=a100:2,vram=40G,cpus=4,mem=8G c:1,constraint=x&y'\n#GANG --mem-per-gpu=1G --size=5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := Directives("f", []byte(text))
		if err != nil {
			return
		}
		for i := range s {
			if s[i].Pos.Line < 1 || s[i].Pos.Col < 1 {
				t.Fatalf("%v has no place: %v", s[i].String(), s[i].Pos)
			}
		}
		r, _, err := buildOf(text)
		if err == nil && (r.Spec.Size < 1 || r.Spec.Size > 65536 || r.Spec.CPUsPerRank < 1 || r.Spec.MemoryPerRank < 0 || r.Spec.MemoryPerNode < 0) {
			t.Fatalf("accepted %+v", r.Spec)
		}
		if err == nil && r.Spec.Roles != nil {
			checkRoles(t, &r.Spec)
		}
	})
}

// checkRoles holds accepted roles against what the controller takes.
func checkRoles(t *testing.T, s *api.Spec) {
	total := 0
	for i := range s.Roles {
		r := &s.Roles[i]
		total += r.Count
		if !api.RoleNameOK(r.Name) || r.Count < 1 || r.CPUsPerRank < 1 || r.MemoryPerRank < 0 || r.MemoryPerRank > maxBytes || r.GPUsPerRank < 0 ||
			r.VRAMBytes > 0 && r.GPUsPerRank == 0 {
			t.Fatalf("accepted %+v", r)
		}
	}
	if total != s.Size || s.Launch != api.LaunchRanks || s.GPUsPerNode+s.RanksPerNode+s.MinNodes > 0 || s.MemoryPerNode > 0 {
		t.Fatalf("%d ranks in roles of %+v", total, s)
	}
}

func FuzzValues(f *testing.F) {
	for _, s := range []string{"12:00:00", "3-00:00:00", "1d12h", "24GiB", "0-15%4", "1-10:2", "B:USR1@2m", "gpu:a100:4,VRAM:24G", "now+1hour", "ALL,A='b,c'", "%4t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseTime(s); err == nil && (d < 0 || d > maxDuration) {
			t.Fatalf("time %v", d)
		}
		if n, err := ParseSize(s); err == nil && (n < 0 || n > maxBytes) {
			t.Fatalf("size %v", n)
		}
		if a, err := parseArray(s); err == nil && (len(a.Indices) < 1 || len(a.Indices) > 10000 || a.Limit < 0) {
			t.Fatalf("array %v", a)
		}
		if n, err := new(Ask).parseNotice(s); err == nil && (n.Signal == "" || n.Lead < 0) {
			t.Fatalf("notice %v", n)
		}
		if g, err := parseGRES(s); err == nil && (g.gpus < 0 || g.vram < 0) {
			t.Fatalf("gres %v", g)
		}
		ParseExport(s)
		strange(s)
	})
}
