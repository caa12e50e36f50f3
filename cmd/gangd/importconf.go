package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gangd/pkg/controller/config"
	"gangd/pkg/slurm/conf"
)

// importConfCommand is `gangd import-slurm-conf`: a configuration out of Slurm's.
func importConfCommand() *cobra.Command {
	var out string
	var force bool
	var more pluginFiles
	cmd := &cobra.Command{
		Use:   "import-slurm-conf SLURM_CONF [GRES_CONF [TOPOLOGY_CONF]]",
		Short: "make a configuration out of Slurm's",
		Long: "Reads Slurm's configuration and makes gangd's of it: one file for the controller and one for each kind of\n" +
			"node. Every setting that was read is listed as taken, taken with a difference, or without a meaning here,\n" +
			"with the reason; a key that is not known is listed and left out. A value that can't be read is refused by file and\n" +
			"line, all of them at once, and then nothing is made. What is made has passed gangd's own check.",
		Example: `  gangd import-slurm-conf /etc/slurm/slurm.conf                      look first: files to stdout, the list to stderr
  gangd import-slurm-conf /etc/slurm/{slurm,gres}.conf -o /etc/gangd/gangd.toml
  gangd import-slurm-conf slurm.conf gres.conf topology.conf 2>&1 >/dev/null | grep difference`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := importConf(args, &more)
			if err != nil {
				return err
			}
			return putConf(made, out, force, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write gangd's to `FILE`, and gnoded's beside it as gnoded-NODE.toml")
	cmd.Flags().StringVar(&more.container, "job-container", "", "read Slurm's job_container.conf, `FILE`, too")
	cmd.Flags().StringArrayVar(&more.plugins, "plugstack", nil, "read a plugstack.conf, `FILE`, too; may be given again")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	return cmd
}

// pluginFiles are those of Slurm's plug-ins.
type pluginFiles struct {
	container string
	plugins   []string
}

// importConf reads the files and makes what passes the daemons' own check.
func importConf(paths []string, more *pluginFiles) (*conf.Result, error) {
	open := func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return string(b), err
	}
	read := make([][]conf.Line, 3)
	var errs []error
	for i, p := range paths {
		if i == 2 { // gangd is told where it is
			if abs, err := filepath.Abs(p); err == nil {
				p = abs
			}
		}
		lines, err := conf.Read(open, p)
		read[i] = lines
		errs = append(errs, err)
	}
	files := &conf.Files{Slurm: read[0], Gres: read[1], Topology: read[2]}
	if more.container != "" {
		lines, err := conf.Read(open, more.container)
		files.JobContainer = lines
		errs = append(errs, err)
	}
	for _, p := range more.plugins {
		lines, err := conf.ReadPlugins(open, p)
		files.Plugins = append(files.Plugins, lines...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	made, err := conf.Make(files)
	if err != nil {
		return nil, err
	}
	return made, checkConf(made)
}

// checkConf loads what was made as the daemons will.
func checkConf(made *conf.Result) error {
	dir, err := os.MkdirTemp("", "gangd-import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "gangd.toml")
	if err := os.WriteFile(path, []byte(made.Gangd), 0o600); err != nil {
		return err
	}
	if _, err := config.LoadController(path, nil); err != nil {
		return err
	}
	for _, n := range made.Nodes {
		path := filepath.Join(dir, "gnoded.toml")
		if err := os.WriteFile(path, []byte(n.Text), 0o600); err != nil {
			return err
		}
		if _, err := config.LoadNode(path, n.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// putConf writes the files, or shows them.
func putConf(made *conf.Result, out string, force bool, stdout, stderr io.Writer) error {
	name := func(n conf.NodeFile) string { return "gnoded-" + n.Name + ".toml" }
	if out == "" {
		fmt.Fprintf(stdout, "# gangd.toml\n%s", made.Gangd)
		for _, n := range made.Nodes {
			fmt.Fprintf(stdout, "\n# %s\n%s", name(n), n.Text)
		}
		made.Report(stderr)
		return nil
	}
	files := map[string]string{out: made.Gangd}
	order := []string{out}
	for _, n := range made.Nodes {
		path := filepath.Join(filepath.Dir(out), name(n))
		files[path] = n.Text
		order = append(order, path)
	}
	for _, path := range order {
		if _, err := os.Lstat(path); err == nil && !force {
			return fmt.Errorf("%s is there; give --force to replace it, or another -o", path)
		}
	}
	made.Report(stdout)
	for _, path := range order {
		if err := os.WriteFile(path, []byte(files[path]), 0o644); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "wrote", path)
	}
	return nil
}
