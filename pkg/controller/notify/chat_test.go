package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestChat: what a user wrote calls nobody together in a chat, and is no link there.
func TestChat(t *testing.T) {
	h := &Webhook{Format: FormatText}
	l := letter(7, "ada")
	l.JobName = "<!channel> <http://evil|Click> [x](http://evil) @here *b* `c` & \u202egnp"
	l.Text = "@channel <@U1>\n<!everyone>"
	b, err := h.body([]*api.Letter{l})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Text string }
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<", ">", "@h", "@c", "@U", "](", "*b", "`", "\u202e", "& "} {
		if strings.Contains(strings.ReplaceAll(got.Text, "&amp; ", ""), bad) {
			t.Errorf("%q is left in %s", bad, got.Text)
		}
	}
	if !strings.Contains(got.Text, "&lt;!channel&gt;") || !strings.Contains(got.Text, "Job_id=7") {
		t.Errorf("%s", got.Text)
	}
}
