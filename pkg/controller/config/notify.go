package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"strings"
)

// Webhook is a target of --notify. Of its URL and secret one may stand in a file: they let others write there.
type Webhook struct {
	Name       string `mapstructure:"name"`
	URL        string `mapstructure:"url"`
	URLFile    string `mapstructure:"url_file"`
	Format     string `mapstructure:"format"` // "gang" or "text"
	SecretFile string `mapstructure:"secret_file"`
	Private    bool   `mapstructure:"private"`
	// Secret is what SecretFile holds, read at the start; no key of its own.
	Secret string
}

// NotifyConfig is where people are told of what happens to their jobs.
type NotifyConfig struct {
	MailServer       string   `mapstructure:"mail_server"` // HOST:PORT; empty: no mail is sent
	MailTLS          string   `mapstructure:"mail_tls"`    // "starttls", "tls" or "none"
	MailFrom         string   `mapstructure:"mail_from"`
	MailLogin        string   `mapstructure:"mail_login"`
	MailPasswordFile string   `mapstructure:"mail_password_file"`
	MailDomain       string   `mapstructure:"mail_domain"`
	MailDomains      []string `mapstructure:"mail_domains"`
	NotifyRate       int      `mapstructure:"notify_rate"`  // deliveries an hour; 0: no bound
	NotifyBurst      int      `mapstructure:"notify_burst"` // at once
	// MailPassword is what MailPasswordFile holds; no key of its own.
	MailPassword string
}

// maxSecretFile is more than any password has.
const maxSecretFile = 4096

// secretOf reads a secret from a file that nobody else can read.
func secretOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("want a file that its owner alone can read (chmod 600 %s), it has mode %04o", path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err == nil && len(b) > maxSecretFile {
		err = fmt.Errorf("want at most %d bytes", maxSecretFile)
	}
	return strings.TrimSpace(string(b)), err
}

// checkNotify finds what can't be delivered to, and reads the secrets.
func (c *Controller) checkNotify(src *source) []error {
	var errs []error
	wrong := func(key, want string) { errs = append(errs, src.wrong(key, want)) }
	n := &c.NotifyConfig
	if n.MailServer != "" {
		if host, port, err := net.SplitHostPort(n.MailServer); err != nil || host == "" || port == "" {
			wrong("mail_server", "want HOST:PORT, such as smtp.example.org:587")
		}
		if n.MailFrom == "" && n.MailDomain != "" {
			n.MailFrom = "gangd@" + n.MailDomain
		}
		if a, err := mail.ParseAddress(n.MailFrom); err != nil || a.Address != n.MailFrom {
			wrong("mail_from", "want a mail address with mail_server, such as gangd@example.org; with mail_domain it is gangd there")
		}
		if len(n.MailDomains) == 0 && n.MailDomain != "" {
			n.MailDomains = []string{n.MailDomain}
		}
		if len(n.MailDomains) == 0 {
			wrong("mail_domains", "want the domains to which mail may go with mail_server, or mail_domain")
		}
	}
	if (n.MailLogin == "") != (n.MailPasswordFile == "") {
		wrong("mail_login", "want mail_password_file with it, and it with mail_password_file")
	}
	if n.MailLogin != "" && n.MailTLS == "none" {
		wrong("mail_tls", "want starttls or tls with mail_login: anybody could read the password on its way")
	}
	if n.MailPasswordFile != "" {
		var err error
		if n.MailPassword, err = secretOf(n.MailPasswordFile); err != nil {
			wrong("mail_password_file", err.Error())
		}
	}
	seen := map[string]bool{}
	for i := range c.Webhooks {
		h := &c.Webhooks[i]
		key := func(field string) string { return fmt.Sprintf("notify[%d].%s", i, field) }
		switch {
		case !partitionRE.MatchString(h.Name):
			wrong(key("name"), wantPartition)
		case seen[h.Name]:
			wrong(key("name"), "there is a target of that name above")
		}
		seen[h.Name] = true
		if (h.URL == "") == (h.URLFile == "") {
			wrong(key("url"), "want url, or url_file, and not both")
			continue
		}
		var err error
		if h.URLFile != "" {
			if h.URL, err = secretOf(h.URLFile); err != nil {
				wrong(key("url_file"), err.Error())
				continue
			}
		}
		u, err := url.Parse(h.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !h.Private) {
			wrong(key("url"), "want https://HOST/PATH; http:// only with private = true") // its value may be a secret
		}
		if h.SecretFile != "" {
			if h.Secret, err = secretOf(h.SecretFile); err != nil {
				wrong(key("secret_file"), err.Error())
			}
		}
		if h.Format == "" {
			h.Format = "gang"
		}
	}
	return errs
}
