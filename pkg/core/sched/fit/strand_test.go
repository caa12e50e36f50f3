package fit

import (
	"fmt"
	"testing"

	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
)

func BenchmarkPrice(b *testing.B) {
	var asks []plantest.Asks
	for i := range 60 {
		asks = append(asks, plantest.Asks{N: 100 - i, Spec: plantest.Part(int64(80-i), 1+i%12)})
	}
	l, _ := plantest.LedgerOf(asks...)
	p := packer{l.Typical(), new(cluster.Packing)}
	s := plantest.Part(20, 2)
	d, _ := cluster.NewNeed(cluster.AskOf(&s, []string{"gpu"}))
	for _, used := range []int64{0, 30, 60} {
		n := plantest.Node("n1", 96, 8, 80)
		if used > 0 {
			for c := range 8 {
				n = plantest.Hold(n, int64(c+1), used*plantest.GiB, false, c)
			}
		}
		k := new(nodeClasses).of(n)
		b.Run(fmt.Sprintf("%d of 80 used", used), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.price(d, k, 1)
			}
		})
	}
}
