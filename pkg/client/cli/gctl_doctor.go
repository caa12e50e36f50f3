package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/finding"
	"gangd/pkg/core/hostlist"
)

func newDoctor() *cobra.Command {
	var asJSON, notes bool
	var nodes string
	cmd := &cobra.Command{
		Use: "doctor", Short: "find what is wrong with the cluster", Args: noArgs,
		Long: "Looks at the controllers, at every node with what its gnoded finds on its own host, at partitions,\n" +
			"reservations, jobs and notices, for an admin also at the store, and says what is wrong, the worst first: what it is\n" +
			"about, what was seen, its severity and id, and below that what to do. The ids do not change; docs/doctor.md has\n" +
			"all of them. It changes nothing, and may be asked from any host. Exit status 1 when something was found, 4 when\n" +
			"the controller does not answer.",
		Example: `  gctl doctor                              what is wrong
  gctl doctor --node=n[1-4]                what is wrong with these nodes
  gctl doctor --json | jq -r '.findings[] | [.severity, .id, .subject] | @tsv'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := &finding.Facts{Version: api.Version}
			if nodes != "" {
				var err error
				if f.Only, err = hostlist.Expand(nodes); err != nil {
					return Usagef("--node=%s: %v", nodes, err)
				}
			}
			found, err := examine(cmd.Context(), client.New(), f)
			if err != nil && len(found) == 0 {
				return err
			}
			if !notes {
				found = slices.DeleteFunc(found, func(f api.DoctorFinding) bool { return f.Severity == api.SeverityNote })
			}
			if said := WriteFindings(cmd, found, finding.Looked(finding.OfConfig, finding.OfHost, finding.OfCluster, finding.OfStore),
				asJSON); err == nil {
				err = said
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&notes, "notes", false, "also what a person has made so: nodes taken out, partitions changed, weak containment")
	cmd.Flags().StringVar(&nodes, "node", "", "findings of these `NODES` alone")
	return cmd
}

// examine asks a cluster for all that can be judged. A controller that does not answer is a finding, and the error.
func examine(ctx context.Context, c *client.Client, f *finding.Facts) (finding.List, error) {
	var l finding.List
	begin := time.Now()
	p, err := c.Ping(ctx)
	f.Asked, f.Now = time.Since(begin), now()
	if err != nil {
		l.Add("controller-unreachable", c.Socket(), "%v", err)
		return l, &ExitError{Status: api.ExitUnreachable}
	}
	f.Ping, f.Time = p, p.Time
	if f.Ping.Term != 0 {
		if all, err := c.Controllers(ctx); err == nil {
			f.Ping.Controllers = all.Controllers
		}
	}
	if f.Nodes, err = c.Nodes(ctx); err != nil {
		return nil, err
	}
	for _, name := range f.Only {
		if !slices.ContainsFunc(f.Nodes.Nodes, func(n api.Node) bool { return n.Name == name }) {
			return nil, api.Errorf(api.CodeNotFound, "there is no node %s", name)
		}
	}
	if len(f.Only) > 0 {
		return finding.Cluster(f).Sorted(), nil
	}
	jobs, err := c.Jobs(ctx, &api.JobQuery{NoRanks: true, Cleaning: true})
	if err != nil {
		return nil, err
	}
	f.Jobs = jobs.Jobs
	reserved, err := c.Reservations(ctx)
	if err != nil {
		return nil, err
	}
	f.Reservations = reserved.Reservations
	// An admin's are everybody's; whoever may not ask finds nothing there.
	f.Outbox, _ = c.Outbox(ctx)
	f.Verify, _ = c.Verify(ctx)
	return finding.Cluster(f).Sorted(), nil
}

// Checker looks at the configuration of a daemon.
type Checker struct {
	// Find says what is wrong with it, and with what it names on this host.
	Find func(ctx context.Context, file string, set []string) finding.List
	// Against says what of it the running daemon does not go by.
	Against func(file string, set []string) ([]api.ConfigChange, error)
}

// NewCheck is the command check of a daemon, without its long text and examples.
func NewCheck(c Checker) *cobra.Command {
	var set []string
	var asJSON bool
	var against string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "find what is wrong with a configuration, and with what it names on this host",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			looked := finding.Looked(finding.OfConfig, finding.OfHost)
			switch against {
			case "":
				return WriteFindings(cmd, c.Find(cmd.Context(), args[0], set), looked, asJSON)
			case "running":
			default:
				return Usagef("--against=%s: want running", against)
			}
			found := c.Find(cmd.Context(), args[0], set)
			if slices.ContainsFunc(found, func(f api.DoctorFinding) bool { return f.Severity == api.SeverityError }) {
				return WriteFindings(cmd, found, looked, asJSON)
			}
			changes, err := c.Against(args[0], set)
			if err != nil {
				return err
			}
			return writeAgainst(cmd, found, changes, asJSON)
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "`running`: say what the daemon that runs here does not go by, and when it would")
	cmd.Flags().StringArrayVar(&set, "set", nil, "override one setting, `KEY=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// WriteFindings says what was found, and that nothing was. The error is the exit status.
func WriteFindings(cmd *cobra.Command, found finding.List, looked int, asJSON bool) error {
	found = found.Sorted()
	var err error
	switch {
	case asJSON:
		err = WriteJSON(cmd.OutOrStdout(), &api.FindingsReply{SchemaVersion: api.SchemaVersion, Checked: looked,
			Findings: append([]api.DoctorFinding{}, found...)})
	case len(found) == 0:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing found, of %d things looked for\n", looked)
	default:
		err = found.Write(cmd.OutOrStdout())
	}
	if err == nil && found.Bad() {
		err = &ExitError{Status: 1}
	}
	return err
}

// writeAgainst says what a reload would change, and what a restart would, where nothing is wrong.
func writeAgainst(cmd *cobra.Command, found finding.List, changes []api.ConfigChange, asJSON bool) error {
	reply := api.AgainstReply{SchemaVersion: api.SchemaVersion, Changes: []api.ConfigChange{}, Restart: []api.ConfigChange{},
		Warnings: append([]api.DoctorFinding{}, found.Sorted()...)}
	for _, c := range changes {
		if c.When == api.ChangeRestart {
			reply.Restart = append(reply.Restart, c)
		} else {
			reply.Changes = append(reply.Changes, c)
		}
	}
	w := cmd.OutOrStdout()
	if asJSON {
		return WriteJSON(w, &reply)
	}
	if err := found.Sorted().Write(w); err != nil {
		return err
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "the running daemon goes by the same")
		return err
	}
	if len(reply.Changes) > 0 {
		fmt.Fprintln(w, "a reload would change:")
		if err := WriteChanges(w, reply.Changes); err != nil {
			return err
		}
	}
	if len(reply.Restart) > 0 {
		fmt.Fprintln(w, "a restart would change, and touch no job:")
	}
	return WriteChanges(w, reply.Restart)
}
