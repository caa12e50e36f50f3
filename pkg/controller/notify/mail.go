package notify

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"gangd/pkg/api"
)

// Mail is the site's mail server.
type Mail struct {
	Server   string // HOST:PORT
	TLS      string // "starttls", "tls" or "none"
	From     string
	Login    string // empty: none is needed
	Password string
	Domain   string   // of users' own addresses
	Domains  []string // to which mail may go
	// TLSConfig says whose certificates are believed; nil: those that the system does.
	TLSConfig *tls.Config
}

// Send delivers letters of one address.
func (m *Mail) Send(ctx context.Context, all []*api.Letter) error {
	msg := mail.NewMsg()
	if err := msg.From(m.From); err != nil {
		return fmt.Errorf("mail_from: %w", err)
	}
	if err := msg.To(all[0].To); err != nil {
		return err
	}
	first, last := id(all[0]), id(all[len(all)-1])
	msg.Subject(cut(title(all), 300))
	msg.SetMessageIDWithValue(fmt.Sprintf("gang.%s.%s.%d@%s", first, last, len(all), m.From[strings.LastIndexByte(m.From, '@')+1:]))
	msg.SetGenHeader("X-Gang-Id", first)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetDate()
	msg.SetBodyString(mail.TypeTextPlain, body(all))
	c, err := m.client()
	if err != nil {
		return err
	}
	if err := c.DialAndSendWithContext(ctx, msg); err != nil {
		return fmt.Errorf("mail server %s: %w", m.Server, err)
	}
	return nil
}

func (m *Mail) client() (*mail.Client, error) {
	host, port, err := net.SplitHostPort(m.Server)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	opts := []mail.Option{mail.WithPort(number), mail.WithTimeout(sendTime), mail.WithTLSPolicy(mail.TLSMandatory), mail.WithoutNoop()}
	switch m.TLS {
	case "tls":
		opts = append(opts, mail.WithSSL())
	case "none":
		opts = append(opts, mail.WithTLSPolicy(mail.NoTLS))
	}
	if m.TLSConfig != nil {
		opts = append(opts, mail.WithTLSConfig(m.TLSConfig))
	}
	if m.Login != "" {
		opts = append(opts, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.Login), mail.WithPassword(m.Password))
	}
	return mail.NewClient(host, opts...)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}
