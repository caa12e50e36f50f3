package session

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestNodeIsSentItsPart: one that reads parts is sent where everybody sits and its own cards, an older one everything.
// Both take in the same of their own ranks.
func TestNodeIsSentItsPart(t *testing.T) {
	body := &api.AssignmentBody{SpecHash: "s", Name: "wide"}
	for i := range 3 {
		body.Nodes = append(body.Nodes, api.Place{Name: fmt.Sprint("n", i+1), Address: fmt.Sprint("10.0.0.", i+1)})
		body.Ranks = append(body.Ranks, api.RankPlace{Node: i, Cards: []string{fmt.Sprint("GPU-", i)}})
	}
	body.Layout = api.NewLayout(body.Nodes, body.Ranks)
	for _, reads := range []bool{true, false} {
		handler := newFakeHandler()
		handler.set(map[string]*api.Spec{"s": {Name: "wide"}}, api.Assignment{MemberKey: key(1, 1), Body: body})
		hub := NewDrivenHub(handler, nil, &api.Hello{Node: "n2", Layouts: reads}, time.Now)
		frames := hub.Welcome(&api.Welcome{Settings: api.DefaultSettings()})
		sent := frames[len(frames)-1].Desired.Assignments[0].Body
		if (sent.Part != nil) != reads || (len(sent.Ranks) == 0) != reads {
			t.Errorf("a node that reads parts: %v, is sent %+v", reads, sent)
		}
		got, err := Copy(frames[len(frames)-1])
		if err != nil {
			t.Fatal(err)
		}
		b := got.Desired.Assignments[0].Body
		if len(b.Nodes) != 3 || b.Nodes[2] != body.Nodes[2] || len(b.Ranks) != 3 || b.Ranks[2].Node != 2 || len(b.Ranks[1].Cards) != 1 || b.Ranks[1].Cards[0] != "GPU-1" {
			t.Errorf("a node that reads parts: %v, takes in %+v", reads, b)
		}
		if others := len(b.Ranks[0].Cards); others != 0 && reads {
			t.Errorf("it was sent %d cards of others", others)
		}
	}
	if p := newHalves(t); !p.node.Hello().Hello.Layouts {
		t.Error("a node does not say that it reads parts")
	}
}
