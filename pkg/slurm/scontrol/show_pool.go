package scontrol

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/slurm/document"
)

// licenses are what the site has of those that --licenses asks for, as slurm.conf says it.
func licenses(s *api.Site) string {
	if s == nil {
		return ""
	}
	i := slices.IndexFunc(api.PoolRows, func(r api.PoolRow) bool { return r.Option == "licenses" })
	return api.PoolText(s.Pools, api.PoolRows[i].Kind)
}

// sitePools are those that Slurm knows by the option that asks for them.
func sitePools(reply *api.NodesReply, option string) (out []api.PoolState) {
	for _, p := range reply.Pools {
		if r := api.PoolRowOf(p.Kind); r != nil && r.Option == option {
			out = append(out, p)
		}
	}
	return out
}

func (c *call) showLicenses(_, id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_licenses error", err)
	}
	pools := sitePools(reply, "licenses")
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
		figures := fmt.Sprintf("Total=%d Used=%d Free=%d Reserved=0 Remote=no", p.Count, p.Used, max(0, p.Count-p.Used))
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
		for _, p := range sitePools(reply, "licenses") {
			out = append(out, document.Of("LicenseName", p.Name, "Total", p.Count, "Used", p.Used, "Free", max(0, p.Count-p.Used), "Remote", false,
				"Reserved", 0,
				"LastConsumed", 0, "LastDeficit", 0, "LastUpdate", 0))
		}
		return out
	})
}
