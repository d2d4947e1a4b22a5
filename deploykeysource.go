package jr2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/sshkey"
	"jr2.dev/jr2/preflight"
)

// A DeployKeyRequest is a Secret that repositories are cloned with over ssh and that is not in the namespace.
type DeployKeyRequest = event.DeployKeyNeeded

// A DeployKeySource says where the private key comes from that goes into the Secret of a DeployKeyRequest. One field is set; the zero
// DeployKeySource declines.
type DeployKeySource struct {
	// Generate makes a new Ed25519 pair. Its public key has to be brought to the host of the repositories by a person, whom DeployKeyMade
	// and DeployKeyReminder tell it.
	Generate bool
	// File is the path of a private key on this machine.
	File string
	// Key is a private key itself: all lines of it.
	Key config.Secret
}

// maxKeyFile bounds what is read of a file in bytes; an RSA key of 16384 bits has 13 KB.
const maxKeyFile = 64 << 10

// Fingerprint reads the key and returns its fingerprint, "SHA256:…", or "" for one that is yet to be generated. The error is what a converge would say
// to this source; it matches ErrPassphrase for a key that is sealed, and ErrDeclined for the zero DeployKeySource. A key that fits is unsealed, in OpenSSH's
// form or PEM, and Ed25519, ECDSA or RSA.
func (s DeployKeySource) Fingerprint(ctx context.Context) (string, error) {
	pair, err := s.read(ctx)
	if err != nil || pair == nil {
		return "", err
	}
	return pair.Fingerprint, nil
}

// read returns the pair; nil for one that is yet to be generated.
func (s DeployKeySource) read(ctx context.Context) (*sshkey.Pair, error) {
	set := 0
	for _, one := range []bool{s.Generate, s.File != "", s.Key.Present()} {
		if one {
			set++
		}
	}
	switch {
	case set == 0:
		return nil, ErrDeclined
	case set > 1:
		return nil, errors.New("more than one source was chosen")
	case s.Generate:
		return nil, nil
	case s.Key.Present():
		pair, err := sshkey.Parse([]byte(s.Key.Reveal()))
		if err != nil {
			return nil, fmt.Errorf("the text that was given: %w", err)
		}
		return pair, nil
	}
	text, err := readKeyFile(ctx, s.File)
	if err != nil {
		return nil, err
	}
	pair, err := sshkey.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	return pair, nil
}

// readKeyFile reads a file of any kind, such as a pipe, but not a large one. It waits for no writer of a named pipe, which may never come, and for what a
// writer has to say only until ctx ends.
func readKeyFile(ctx context.Context, path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()                                                               //nolint:errcheck // only read
	defer context.AfterFunc(ctx, func() { file.SetReadDeadline(time.Unix(1, 0)) })() //nolint:errcheck // a file that knows no deadline does not block
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if ended := context.Cause(ctx); err != nil && ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("%s: it is larger than any private key", path)
	}
	return text, nil
}

// ErrPassphrase says that a private key is sealed with a passphrase.
var ErrPassphrase = sshkey.ErrPassphrase

// ErrNobodyAsked says that a question stood open and nobody was there to answer it.
var ErrNobodyAsked = errors.New("nobody was there to be asked")

// A DeployKeyError says that a converge has no key for repositories that are cloned over ssh. Nothing was written.
type DeployKeyError struct {
	// Requests are the Secrets without a source: all of them when nobody could be asked, else the one whose source does not do.
	Requests []DeployKeyRequest
	// Homeless says that the namespace is not there yet.
	Homeless bool
	// Err is ErrNobodyAsked, ErrDeclined, or what is wrong with the key that was given.
	Err error
}

func (e *DeployKeyError) Unwrap() error { return e.Err }

// Error names the repositories and the Secrets, the reason and what to type.
func (e *DeployKeyError) Error() string {
	var texts, fixes []string
	for _, request := range e.Requests {
		texts = append(texts, fmt.Sprintf("that of %s belongs in Secret %q, which does not exist in namespace %q",
			strings.Join(request.Repos, ", "), request.Secret, request.Namespace))
		fixes = append(fixes, preflight.DeployKeyFix(request.Namespace, request.Secret))
	}
	if e.Homeless && len(e.Requests) > 0 {
		fixes = append([]string{"kubectl create namespace " + e.Requests[0].Namespace}, fixes...)
	}
	why := e.Err.Error()
	if errors.Is(e.Err, ErrDeclined) {
		why = "no source of a key was chosen"
	}
	return fmt.Sprintf("deploy key: %s — %s. Nothing was changed. Pass --yes or --deploy-key generate to have a key generated, --deploy-key PATH to give one, or create it: %s",
		strings.Join(texts, "; "), why, strings.Join(fixes, " && "))
}
