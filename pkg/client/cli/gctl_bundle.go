package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/finding"
)

func newBundle() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bundle [FILE]", Short: "write how the cluster is into a file for who helps", Args: cobra.MaximumNArgs(1),
		Long: "Writes what gctl doctor finds and how controllers, nodes, jobs and reservations are into FILE, a zip file with a\n" +
			"table of contents, README.txt. What people wrote is left out: scripts, arguments, environments, comments, paths, names of\n" +
			"jobs, addresses and targets of notices, and all configuration. Names of users, accounts, nodes and partitions are\n" +
			"in it, and reasons that admins gave. FILE must not exist.",
		Example: `  gctl bundle                        gang-bundle-TIME.zip in this directory
  gctl bundle /tmp/b.zip             under another name
  unzip -p b.zip README.txt          what is in it`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "gang-bundle-" + now().UTC().Format("20060102-150405") + ".zip"
			if len(args) > 0 {
				path = args[0]
			}
			f := &finding.Facts{Version: api.Version}
			found, err := examine(cmd.Context(), client.New(), f)
			if err != nil && f.Ping != nil {
				return err
			}
			var b bytes.Buffer // whole, or not at all
			if err := writeBundle(&b, f, found, hostText()); err != nil {
				return err
			}
			out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = out.Write(b.Bytes())
			if closed := out.Close(); err == nil {
				err = closed
			}
			if err != nil {
				_ = os.Remove(path)
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	return cmd
}

// bundledJob is what a bundle says of a job: nothing that its user wrote.
type bundledJob struct {
	JobID        int64        `json:"job_id"`
	ArrayJobID   int64        `json:"array_job_id,omitempty"`
	User         string       `json:"user"`
	Account      string       `json:"account"`
	Partition    string       `json:"partition"`
	State        api.JobState `json:"state"`
	Reason       string       `json:"reason"`
	Cause        api.Cause    `json:"cause"`
	Held         string       `json:"held,omitempty"`
	Priority     int64        `json:"priority"`
	Size         int          `json:"size"`
	Launch       api.Launch   `json:"launch"`
	Cards        int          `json:"cards"`
	CPUsPerRank  int          `json:"cpus_per_rank"`
	Memory       int64        `json:"memory_bytes"`
	Epoch        int          `json:"epoch"`
	RestartCount int          `json:"restart_count"`
	Nodes        []string     `json:"nodes"`
	Submit       time.Time    `json:"submit_time"`
	Start        time.Time    `json:"start_time,omitzero"`
	TimeLimit    int64        `json:"time_limit_seconds"`
	Grace        int64        `json:"grace_seconds"`
	Epilog       []string     `json:"epilog,omitempty"`
}

func bundled(j *api.Job) bundledJob {
	return bundledJob{JobID: j.JobID, ArrayJobID: j.ArrayJobID, User: j.User, Account: j.Account, Partition: j.Partition, State: j.State,
		Reason: j.Reason, Cause: j.Cause, Held: j.Held, Priority: j.Priority, Size: j.Size, Launch: j.Launch, Cards: j.Cards,
		CPUsPerRank: j.CPUsPerRank, Memory: j.MemoryBytes, Epoch: j.Epoch, RestartCount: j.RestartCount, Nodes: j.Nodes, Submit: j.SubmitTime,
		Start: j.StartTime, TimeLimit: j.TimeLimitSeconds, Grace: j.GraceSeconds, Epilog: j.Epilog}
}

// quoting are findings whose evidence may repeat what a person or another program wrote.
var quoting = map[string]bool{"notices-given-up": true, "notices-late": true, "job-never": true, "job-starting": true,
	"store-disagrees": true}

// writeBundle writes the files with a table of contents before them.
func writeBundle(w io.Writer, f *finding.Facts, found finding.List, host string) error {
	var plain finding.List
	for _, x := range found {
		if quoting[x.ID] {
			x.Evidence = "left out of the bundle"
		}
		plain = append(plain, x)
	}
	jobs := []bundledJob{}
	for i := range f.Jobs {
		jobs = append(jobs, bundled(&f.Jobs[i]))
	}
	files := []struct {
		name, what string
		content    any
	}{
		{"doctor.json", "what gctl doctor --notes finds", &api.FindingsReply{SchemaVersion: api.SchemaVersion, Checked: len(finding.Kinds),
			Findings: append([]api.DoctorFinding{}, plain...)}},
		{"controller.json", "version, figures and settings of the controller, and of several who leads and who stands by", f.Ping},
		{"nodes.json", "nodes, cards and partitions", f.Nodes},
		{"jobs.json", "jobs that have not ended, without what their users wrote", jobs},
		{"reservations.json", "reservations", f.Reservations},
		{"host.txt", "this host: system, version of the commands", host},
	}
	out := zip.NewWriter(w)
	contents := "A bundle of gctl " + f.Version + ", " + f.Now.UTC().Format(time.RFC3339) + ".\n\n"
	texts := map[string][]byte{}
	for _, file := range files {
		text, is := file.content.(string)
		b := []byte(text)
		if !is {
			var err error
			if b, err = json.MarshalIndent(file.content, "", "  "); err != nil {
				return err
			}
		}
		texts[file.name] = b
		contents += fmt.Sprintf("%-18s %7d bytes  %s\n", file.name, len(b), file.what)
	}
	contents += "\nLeft out: scripts, arguments, environments, comments, paths and names of jobs, notices, and all configuration.\n"
	put := func(name string, b []byte) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.Now}
		h.SetMode(0o600)
		file, err := out.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = file.Write(b)
		return err
	}
	if err := put("README.txt", []byte(contents)); err != nil {
		return err
	}
	for _, file := range files {
		if err := put(file.name, texts[file.name]); err != nil {
			return err
		}
	}
	return out.Close()
}

// hostText says what machine the command runs on.
func hostText() string {
	var b strings.Builder
	name, _ := os.Hostname() // empty: it says so itself
	fmt.Fprintf(&b, "host %s\ngctl %s\n", name, api.Version)
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		fmt.Fprintf(&b, "%s %s %s\n", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]),
			unix.ByteSliceToString(u.Machine[:]))
	}
	return b.String()
}
