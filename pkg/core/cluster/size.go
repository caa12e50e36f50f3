package cluster

import (
	"math"
	"strconv"
)

// Size writes bytes as people ask for them: 40G, 512M, 22.5G.
func Size(bytes int64) string {
	units := []struct {
		name string
		size int64
	}{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}
	for _, u := range units {
		if bytes < u.size || u.name == "T" && bytes < 10*u.size {
			continue // 1536G reads better beside 80G than 1.5T
		}
		if whole := bytes / u.size; bytes%u.size == 0 || whole >= 100 {
			return strconv.FormatInt(whole, 10) + u.name
		}
		// Cut, not rounded: "22.5G free" must never be more than there is.
		tenths := math.Floor(float64(bytes)/float64(u.size)*10) / 10
		return strconv.FormatFloat(tenths, 'f', -1, 64) + u.name
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
