package scontrol

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/slurm/document"
)

// licence is the kind of pool that Slurm calls licenses.
var licence = api.PoolRows[slices.IndexFunc(api.PoolRows, func(r api.PoolRow) bool { return r.Option == "licenses" })].Kind

// licenses are what the site has of them, as slurm.conf says it.
func licenses(s *api.Site) string {
	if s == nil {
		return ""
	}
	return api.PoolText(s.Pools, licence)
}

// siteLicenses are what the site has of them, and what of it is held.
func siteLicenses(reply *api.NodesReply) []api.PoolState {
	return slices.DeleteFunc(reply.Pools, func(p api.PoolState) bool { return p.Kind != licence })
}

func (c *call) showLicenses(_, id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_licenses error", err)
	}
	pools := siteLicenses(reply)
	if len(pools) == 0 {
		fmt.Fprintln(c.Out, "No licenses configured in Slurm.")
		return 0
	}
	found := false
	for _, p := range pools {
		if id != "" && p.Name != id {
			continue
		}
		found = true
		figures := fmt.Sprintf("Total=%d Used=%d Free=%d Reserved=0 Remote=no", p.Count, p.Used, p.Free())
		if c.oneLine {
			fmt.Fprintf(c.Out, "LicenseName=%s %s\n", p.Name, figures)
		} else {
			fmt.Fprintf(c.Out, "LicenseName=%s\n    %s\n", p.Name, figures)
		}
	}
	if !found {
		fmt.Fprintf(c.Out, "License name %s not found.\n", id)
		return 1
	}
	return 0
}

func (c *call) licenseDocument(string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_licenses error", err)
	}
	return c.writeDocument("licenses", func(document.Parser) []document.Object {
		var out []document.Object
		for _, p := range siteLicenses(reply) {
			out = append(out, document.Of("LicenseName", p.Name, "Total", p.Count, "Used", p.Used, "Free", p.Free(), "Remote", false,
				"Reserved", 0,
				"LastConsumed", 0, "LastDeficit", 0, "LastUpdate", 0))
		}
		return out
	})
}
