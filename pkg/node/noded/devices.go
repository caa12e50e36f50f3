package noded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// judgeDevices says whether a member can be kept from the cards of others: CUDA_VISIBLE_DEVICES
// is advice that any program may ignore, the kernel's word on a device file is not. Empty is a
// node without cards.
func (d *daemon) judgeDevices() string {
	cards := d.cards.list()
	if len(cards) == 0 {
		return ""
	}
	mig := ""
	for _, c := range cards {
		if c.Device == "" {
			return "not enforced: its cards have no device files"
		}
		if c.MIG {
			mig = " between GPUs, not between MIG instances of one"
		}
		if _, err := proc.DeviceAt(c.Device); err != nil {
			return "not enforced: " + err.Error()
		}
	}
	if err := proc.DevicesDeniable(d.cgroups.Kind, d.cgroups.Dir); err != nil {
		return "not enforced: " + err.Error()
	}
	return api.DevicesEnforced + mig
}

// cardNames is what a member's environment calls its cards, by UUID; nil: by their UUIDs. A program
// that is kept from other cards' files sees its own alone, which CUDA numbers from 0 then.
func (d *daemon) cardNames(spec *api.Spec, has []shim.Card) map[string]string {
	if spec.NamesCards(d.site().CardNames) != api.CardsByNumber {
		return nil
	}
	return numbered(d.cards.list(), has, strings.HasPrefix(d.devices, api.DevicesEnforced))
}

func numbered(cards []api.CardInfo, has []shim.Card, alone bool) map[string]string {
	names := map[string]string{}
	own := 0
	for _, c := range cards {
		if c.MIG {
			return nil // CUDA has no numbers for instances
		}
		if !slices.ContainsFunc(has, func(h shim.Card) bool { return h.UUID == c.UUID }) {
			continue
		}
		names[c.UUID] = strconv.Itoa(c.Index)
		if alone {
			names[c.UUID] = strconv.Itoa(own)
		}
		own++
	}
	return names
}

// deny lists the device files of the cards that a member has not: of all of them where it has
// none. Instances of one GPU share its file.
func (d *daemon) deny(has []shim.Card) ([]proc.Device, error) {
	if !strings.HasPrefix(d.devices, api.DevicesEnforced) {
		return nil, nil
	}
	var own []string
	cards := d.cards.list()
	for _, c := range cards {
		if slices.ContainsFunc(has, func(h shim.Card) bool { return h.UUID == c.UUID }) {
			own = append(own, c.Device)
		}
	}
	var out []proc.Device
	for _, c := range cards {
		if c.Device == "" || slices.Contains(own, c.Device) {
			continue
		}
		dev, err := proc.DeviceAt(c.Device)
		if err != nil {
			return nil, fmt.Errorf("card %d: %w", c.Index, err)
		}
		if !slices.Contains(out, dev) {
			out = append(out, dev)
		}
	}
	return out, nil
}
