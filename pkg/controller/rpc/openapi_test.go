package rpc

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gangd/pkg/api"
)

// Every call is in docs/openapi.yaml, and every call in there exists.
func TestOpenAPINamesEveryCall(t *testing.T) {
	b, err := os.ReadFile("../../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for path, methods := range doc.Paths {
		for m := range methods {
			written[strings.ToUpper(m)+" "+path] = true
		}
	}
	s := &Server{}
	offered := map[string]bool{}
	for _, r := range s.routes() {
		offered[r.pattern] = true
	}
	for pattern := range s.open() {
		offered[pattern] = true
	}
	for _, path := range []string{api.WordPath, api.LinePath} { // answered before a controller leads, by package controller
		offered["GET "+path] = true
	}
	for p := range offered {
		if !written[p] {
			t.Errorf("%s is not in docs/openapi.yaml", p)
		}
	}
	for p := range written {
		if !offered[p] {
			t.Errorf("docs/openapi.yaml has %s, which does not exist", p)
		}
	}
}
