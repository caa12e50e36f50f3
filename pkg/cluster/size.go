package cluster

import "strconv"

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
		tenths := bytes / (u.size / 10)
		if bytes%u.size == 0 || tenths >= 1000 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
		return strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64) + u.name
	}
	return strconv.FormatInt(bytes, 10) + "B"
}
