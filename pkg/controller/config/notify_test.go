package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotify(t *testing.T) {
	dir := t.TempDir()
	secret, open := filepath.Join(dir, "secret"), filepath.Join(dir, "open")
	for path, mode := range map[string]os.FileMode{secret: 0o600, open: 0o644} {
		if err := os.WriteFile(path, []byte("https://hooks.example/T0PS3CRET\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	load := func(text string) (*Controller, error) {
		file := filepath.Join(dir, "gangd.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadController(file, nil)
	}
	c, err := load("mail_server = \"smtp.uni.example:587\"\nmail_domain = \"uni.example\"\nmail_login = \"gangd\"\nmail_password_file = \"" + secret + "\"\n[[notify]]\nname = \"chat\"\nurl_file = \"" + secret + "\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.MailFrom != "gangd@uni.example" || len(c.MailDomains) != 1 || c.MailPassword == "" || c.Webhooks[0].URL != "https://hooks.example/T0PS3CRET" || c.Webhooks[0].Format != "gang" {
		t.Errorf("%+v", c.NotifyConfig)
	}
	for text, want := range map[string]string{
		"mail_server = \"smtp\"\nmail_domain = \"a.b\"":                                                  "want HOST:PORT",
		"mail_server = \"smtp:25\"\nmail_from = \"g@a.b\"":                                               "mail_domains",
		"mail_login = \"x\"":                                                                             "mail_password_file",
		"mail_login = \"x\"\nmail_tls = \"none\"\nmail_password_file = \"" + secret + "\"":               "read the password",
		"mail_login = \"x\"\nmail_password_file = \"" + open + "\"":                                      "chmod 600",
		"[[notify]]\nname = \"a\"":                                                                       "want url, or url_file",
		"[[notify]]\nname = \"a\"\nurl = \"http://x.example/\"":                                          "want https://",
		"[[notify]]\nname = \"a\"\nurl = \"https://x/\"\n[[notify]]\nname = \"a\"\nurl = \"https://x/\"": "of that name above",
		"[[notify]]\nname = \"a\"\nurl = \"https://x/\"\nformat = \"xml\"":                               "format",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
