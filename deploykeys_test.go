package jr2_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/preflight"
)

// keyedFolder binds three repositories over ssh: two that share the Secret git-ssh, and one with the Secret other-ssh.
func keyedFolder(t *testing.T) string {
	t.Helper()
	with := func(url string) string {
		return strings.Replace(hold("3Gi", "1"), "https://git.example.test/team/app.git", url, 1)
	}
	return folder(t, map[string]string{
		"jr2.config.ts":    configOf(`git: { credentials: [{ match: "git.test/", sshKey: "git-ssh" }, { match: "other.test/", sshKey: "other-ssh" }] }`),
		"workflows/one.ts": with("git@git.test:team/a.git"), "workflows/two.ts": with("ssh://git:s3cret@git.test/team/b.git"), "workflows/three.ts": with("git@other.test:c.git"),
		"workflows/four.ts": hold("3Gi", "1"),
	})
}

const (
	urlsOfGit   = "git@git.test:team/a.git, ssh://git:xxxxx@git.test/team/b.git"
	keyedNobody = `error: deploy key: that of git@git.test:team/a.git, ssh://git:xxxxx@git.test/team/b.git belongs in Secret "git-ssh", which does not exist in namespace "keys-unasked"; ` +
		`that of git@other.test:c.git belongs in Secret "other-ssh", which does not exist in namespace "keys-unasked" — nobody was there to be asked. Nothing was changed. ` +
		`Pass --yes or --deploy-key generate to have a key generated, --deploy-key PATH to give one, or create it: kubectl create namespace keys-unasked && ` +
		`dir=$(mktemp -d) && ssh-keygen -q -t ed25519 -N '' -f "$dir/identity" && kubectl -n keys-unasked create secret generic git-ssh --from-file="$dir" && cat "$dir/identity.pub" && rm -r "$dir" && ` +
		`dir=$(mktemp -d) && ssh-keygen -q -t ed25519 -N '' -f "$dir/identity" && kubectl -n keys-unasked create secret generic other-ssh --from-file="$dir" && cat "$dir/identity.pub" && rm -r "$dir"`
)

func agrees(o *jr2.Options) {
	o.Yes = false
	o.Confirm = func(context.Context, jr2.FirstContact) (bool, error) { return true, nil }
}

// answering answers every question with one source.
func answering(source jr2.DeployKeySource) func(*jr2.Options) {
	return func(o *jr2.Options) {
		o.DeployKey = func(context.Context, jr2.DeployKeyRequest) (jr2.DeployKeySource, error) { return source, nil }
	}
}

// keyFile writes a private key as openssl would, and returns its fingerprint too.
func keyFile(t *testing.T) (path, fingerprint, private string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	seen, err := ssh.NewPublicKey(public)
	must(t, err)
	private = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	path = filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(path, []byte(private), 0o600))
	return path, ssh.FingerprintSHA256(seen), private
}

func sealedFile(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("word"))
	must(t, err)
	path := filepath.Join(t.TempDir(), "sealed")
	must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	return path
}

// TestDeployKeyWithoutASource: nothing is written before every key has a source that does, and the error names repositories, Secret and what to type.
func TestDeployKeyWithoutASource(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	sealed, broken := sealedFile(t), errors.New("the terminal broke")
	missing := filepath.Join(t.TempDir(), "none")
	const about = `error: deploy key: that of ` + urlsOfGit + ` belongs in Secret "git-ssh", which does not exist in namespace "keys-unasked" — `
	for name, test := range map[string]struct {
		change func(*jr2.Options)
		is     error
		says   string
	}{
		"nobody to ask":  {func(*jr2.Options) {}, jr2.ErrNobodyAsked, keyedNobody},
		"declined":       {answering(jr2.DeployKeySource{}), jr2.ErrDeclined, about + "no source of a key was chosen. Nothing was changed. "},
		"a passphrase":   {answering(jr2.DeployKeySource{File: sealed}), jr2.ErrPassphrase, about + sealed + ": it has a passphrase, which nobody can type in the cluster — give a key without one"},
		"no such file":   {answering(jr2.DeployKeySource{File: missing}), os.ErrNotExist, about + "open " + missing + ": no such file or directory. Nothing was changed. "},
		"a word":         {answering(jr2.DeployKeySource{Key: config.NewSecret("hunter2")}), nil, about + "the text that was given: it holds no private key"},
		"two sources":    {answering(jr2.DeployKeySource{Generate: true, File: sealed}), nil, about + "more than one source was chosen. Nothing was changed. "},
		"an endless one": {answering(jr2.DeployKeySource{File: "/dev/zero"}), nil, about + "/dev/zero: it is larger than any private key. Nothing was changed. "},
		"a failure": {func(o *jr2.Options) {
			o.DeployKey = func(context.Context, jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
				return jr2.DeployKeySource{}, broken
			}
		}, broken, "error: the terminal broke"},
	} {
		t.Run(name, func(t *testing.T) {
			told := w.up(t, dir, into("keys-unasked"), agrees, test.change)
			var keyless *jr2.DeployKeyError
			if !strings.HasPrefix(told.lastLine(), test.says) || errors.As(told.err, &keyless) == (test.is == broken) || test.is != nil && !errors.Is(told.err, test.is) {
				t.Errorf("got %s", told.lastLine())
			}
			if strings.Contains(told.lines, "hunter2") || strings.Contains(told.lines, "s3cret") {
				t.Errorf("it tells a secret:\n%s", told.lines)
			}
			w.isAbsent(t, "keys-unasked")
		})
	}
}

// TestDeployKeys: a plan says what will be made, a converge makes one key for each Secret, tells the public one when it is there and as its last words, and
// the private one never; the next converge has nothing to do.
func TestDeployKeys(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	file, fingerprint, private := keyFile(t)
	var asked []jr2.DeployKeyRequest
	source := func(o *jr2.Options) {
		o.DeployKey = func(_ context.Context, request jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
			w.isAbsent(t, "keys")
			asked = append(asked, request)
			if request.Secret == "other-ssh" {
				return jr2.DeployKeySource{File: file}, nil
			}
			return jr2.DeployKeySource{Generate: true}, nil
		}
	}
	planned := w.plan(t, dir, into("keys"))
	must(t, planned.err)
	if len(asked) > 0 || len(planned.plan.DeployKeys) != 2 || !strings.Contains(planned.plan.String(), "\ndeploy key: make Secret git-ssh from the source that is chosen then (--yes: an ed25519 key pair), for "+urlsOfGit+"\n") {
		t.Errorf("planned\n%s", planned.plan)
	}
	surely := w.plan(t, dir, into("keys"), func(o *jr2.Options) { o.Yes = true })
	if !strings.Contains(surely.plan.String(), "\ndeploy key: generate an ed25519 key pair in Secret git-ssh, for "+urlsOfGit+"\n") {
		t.Errorf("planned\n%s", surely.plan)
	}

	told := w.up(t, dir, into("keys"), source, func(o *jr2.Options) { o.Plan = planned.plan })
	must(t, told.err)
	if told.result.Changed != planned.plan.Changes() || len(asked) != 2 || asked[0].Secret != "git-ssh" || strings.Join(asked[0].Repos, ", ") != urlsOfGit || asked[0].Namespace != "keys" {
		t.Errorf("asked %+v, and changed %d of %d", asked, told.result.Changed, planned.plan.Changes())
	}
	generated, given := w.keySecret(t, "keys", "git-ssh"), w.keySecret(t, "keys", "other-ssh")
	public := strings.TrimSpace(string(generated.Data[names.DeployKeyPublic]))
	hosts := strings.ReplaceAll(urlsOfGit, ", ", " and ") + ", or to an account that may read them all:\n  " + public + "\n"
	made := `deploy key: generated ` + fingerprintOf(t, generated) + ` in Secret "git-ssh" — add its public key to the deploy keys of ` + hosts
	if !strings.Contains(told.lines, made) || !strings.Contains(told.lines, `deploy key: the key `+fingerprint+` is in Secret "other-ssh", for git@other.test:c.git`+"\n") || fingerprintOf(t, given) != fingerprint {
		t.Errorf("told\n%s", told.lines)
	}
	last := "converged — `jr2 run <workflow>` when ready\n" + `deploy key: unless you did, add the public key of Secret "git-ssh" to the deploy keys of ` + hosts
	if !strings.HasSuffix(told.lines, last) || !strings.HasSuffix(public, " jr2/keys/git-ssh") {
		t.Errorf("its last words\n%s\nwant\n%s", told.lines, last)
	}
	if warned := strings.Index(told.lines, "  warning: whoever may read Secrets in namespace \"keys\""); warned < 0 || warned > strings.Index(told.lines, `namespace: "keys" created`) {
		t.Errorf("not warned before the first write:\n%s", told.lines)
	}
	if strings.Contains(told.lines, "does not exist in namespace") || told.result.DeployKeys[1].PublicKey != "" {
		t.Errorf("it warns of what it makes, or tells more than the fingerprint of a key that it was given: %+v\n%s", told.result.DeployKeys, told.lines)
	}
	raw, err := json.Marshal(told.result)
	must(t, err)
	text := told.lines + string(raw) + fmt.Sprintf("%+v", told.result) + planned.plan.String()
	for _, secret := range []string{private[60:90], string(generated.Data[names.DeployKeyPrivate])[100:130], string(given.Data[names.DeployKeyPrivate])[100:130], "BEGIN", "s3cret"} {
		if strings.Contains(text, secret) {
			t.Errorf("it tells a private key")
		}
	}

	again := w.up(t, dir, into("keys"), agrees)
	must(t, again.err)
	if again.result.Changed != 0 || strings.Contains(again.lines, "deploy key") || w.keySecret(t, "keys", "git-ssh").ResourceVersion != generated.ResourceVersion {
		t.Errorf("the second time:\n%s", again.lines)
	}
	if settled := w.plan(t, dir, into("keys")); len(settled.plan.DeployKeys) > 0 || settled.plan.Changes() != 0 {
		t.Errorf("planned afterwards\n%s", settled.plan)
	}
	var moved *jr2.MovedError
	if late := w.up(t, dir, into("keys"), func(o *jr2.Options) { o.Plan = planned.plan }); !errors.As(late.err, &moved) || !slices.Contains(moved.Moved, "the deploy keys") {
		t.Errorf("by the plan that was carried out: %v", late.err)
	}
}

// keySecret reads a Secret that a converge made, whose halves belong together.
func (w *world) keySecret(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	secret, err := w.client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	private, public := string(secret.Data["identity"]), string(secret.Data["identity.pub"])
	if secret.Type != corev1.SecretTypeOpaque || len(secret.Data) != 2 || secret.Labels[names.LabelInstance] != "my-instance" || secret.Labels[names.LabelManagedBy] != names.ManagedBy ||
		!strings.HasSuffix(private, "-----\n") || !strings.HasSuffix(public, "\n") {
		t.Errorf("Secret %s is of type %s, with labels %v", name, secret.Type, secret.Labels)
	}
	said, _, _, _, err := ssh.ParseAuthorizedKey([]byte(public))
	must(t, err)
	if ssh.FingerprintSHA256(said) != fingerprintOf(t, secret) {
		t.Errorf("Secret %s has two halves that do not belong together", name)
	}
	return secret
}

func fingerprintOf(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(secret.Data["identity"])
	must(t, err)
	return ssh.FingerprintSHA256(signer.PublicKey())
}

// TestDeployKeyThatCameMeanwhile: a Secret that somebody makes while the question stands is left as it is, and nothing is added to it.
func TestDeployKeyThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	told := w.up(t, keyedFolder(t), into("keys-meanwhile"), adopted, func(o *jr2.Options) {
		o.DeployKey = func(ctx context.Context, request jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
			home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: request.Namespace}}
			if _, err := w.client.CoreV1().Namespaces().Create(ctx, home, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return jr2.DeployKeySource{}, err
			}
			theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: request.Secret}, Data: map[string][]byte{"identity": []byte("theirs")}}
			_, err := w.client.CoreV1().Secrets(request.Namespace).Create(ctx, theirs, metav1.CreateOptions{})
			return jr2.DeployKeySource{Generate: true}, err
		}
	})
	must(t, told.err)
	secret, err := w.client.CoreV1().Secrets("keys-meanwhile").Get(t.Context(), "git-ssh", metav1.GetOptions{})
	must(t, err)
	if len(secret.Data) != 1 || string(secret.Data["identity"]) != "theirs" || len(told.result.DeployKeys) != 0 || strings.Contains(told.lines, "ssh-ed25519") ||
		!strings.Contains(told.lines, "warning: Secret git-ssh came while this converge was asked for a deploy key — it stays as it is") {
		t.Errorf("it has %d keys; told\n%s", len(secret.Data), told.lines)
	}
}

// TestDeployKeyOfTwoAtOnce: two converges that were both told to generate make one key, and only the one who made it tells it.
func TestDeployKeyOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	var both sync.WaitGroup
	both.Add(2)
	var once [2]sync.Once
	var tolds [2]told
	var ended sync.WaitGroup
	for i := range tolds {
		ended.Go(func() {
			tolds[i] = w.up(t, dir, into("keys-both"), func(o *jr2.Options) {
				o.DeployKey = func(context.Context, jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
					once[i].Do(both.Done)
					both.Wait()
					return jr2.DeployKeySource{Generate: true}, nil
				}
			})
		})
	}
	ended.Wait()
	must(t, errors.Join(tolds[0].err, tolds[1].err))
	public := strings.TrimSpace(string(w.keySecret(t, "keys-both", "git-ssh").Data[names.DeployKeyPublic]))
	if strings.Contains(tolds[0].lines, public) == strings.Contains(tolds[1].lines, public) || len(tolds[0].result.DeployKeys)+len(tolds[1].result.DeployKeys) != 2 {
		t.Errorf("told\n%s\n%s", tolds[0].lines, tolds[1].lines)
	}
}

// TestDeployKeyCutOff: a converge that ends between the making and the keeping of a key told it to nobody, and the next one makes one. When only the
// answer is lost, the key that is kept is the one that is told, and whoever has to bring it to a host is reminded also where the converge fails later.
func TestDeployKeyCutOff(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	fates := make(chan string, 3)
	for _, fate := range []string{"before", "after", "before"} {
		fates <- fate
	}
	proxy := w.served(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/keys-cut/secrets" || len(fates) == 0 {
				return next.RoundTrip(r)
			}
			fate := <-fates
			if fate == "before" {
				return nil, errors.New("cut off before")
			}
			if response, err := next.RoundTrip(r); err == nil {
				response.Body.Close() //nolint:errcheck // nobody hears it
			}
			return nil, errors.New("cut off after")
		})
	})
	must(t, w.up(t, folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping}), into("keys-cut")).err) // so that only the keys are made
	cut := w.up(t, dir, into("keys-cut"), proxy)
	if cut.err == nil || strings.Contains(cut.lines, "ssh-ed25519") || len(cut.result.DeployKeys) != 0 || !strings.HasPrefix(cut.lastLine(), "error: keep the deploy key in Secret git-ssh: ") {
		t.Errorf("cut off before the write:\n%s", cut.lines)
	}
	lost := w.up(t, dir, into("keys-cut"), proxy)
	public := strings.TrimSpace(string(w.keySecret(t, "keys-cut", "git-ssh").Data[names.DeployKeyPublic]))
	if lost.err == nil || strings.Count(lost.lines, "\n  "+public+"\n") != 2 || len(lost.result.DeployKeys) != 1 || !strings.Contains(lost.lines, "\n  "+public+"\nerror: keep the deploy key in Secret other-ssh: ") {
		t.Errorf("cut off after the write of one, and before that of the other:\n%s", lost.lines)
	}
	whole := w.up(t, dir, into("keys-cut"), proxy)
	must(t, whole.err)
	if len(whole.result.DeployKeys) != 1 || whole.result.DeployKeys[0].Secret != "other-ssh" || strings.Contains(whole.lines, public) {
		t.Errorf("completed:\n%s", whole.lines)
	}
	if next := w.up(t, dir, into("keys-cut")); next.err != nil || next.result.Changed != 0 || strings.Contains(next.lines, "deploy key") {
		t.Errorf("afterwards: %v\n%s", next.err, next.lines)
	}
}

// TestDeployKeyThatNobodyMaySee: who may not look makes no key and hears so; the roles that would do say both rights.
func TestDeployKeyThatNobodyMaySee(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := keyedFolder(t)
	// An admin made all roles: who writes a role that lets others see each Secret must be allowed to see them.
	must(t, w.up(t, folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/hold.ts": hold("3Gi", "1")}), into("keys-unseen")).err)
	objs := w.roles(t, dir, "unseeing", into("keys-unseen"))
	took := 0
	for _, o := range objs {
		rules := rulesOf(o)
		for i, rule := range *rules {
			if slices.Contains(rule.Verbs, "get") && slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.ResourceNames, "git-ssh") {
				(*rules)[i].ResourceNames = slices.DeleteFunc(slices.Clone(rule.ResourceNames), func(name string) bool { return name == "git-ssh" })
				took++
			}
		}
	}
	if took != 1 { // the other one too is seen by name, in the same rule
		t.Fatalf("%d rules let the user see the key", took)
	}
	w.give(t, objs)
	w.knows(t, "unseeing", objs)
	told := w.up(t, dir, into("keys-unseen"), w.as("unseeing"))
	must(t, told.err)
	note := "warning: nobody could say whether the deploy key of repos " + urlsOfGit + ` is there, so none is made: read Secret keys-unseen/git-ssh that the configuration names: secrets "git-ssh" is forbidden`
	if !strings.Contains(told.lines, note) || len(told.result.DeployKeys) != 1 || told.result.DeployKeys[0].Secret != "other-ssh" {
		t.Errorf("told\n%s", told.lines)
	}
	if _, err := w.client.CoreV1().Secrets("keys-unseen").Get(t.Context(), "git-ssh", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was made: %v", err)
	}
	report := w.check(t, dir, preflight.Choice{}, into("keys-unseen"), w.as("unseeing"))
	if i := slices.IndexFunc(report.Findings, func(f preflight.Finding) bool { return f.Object == "Secret keys-unseen/git-ssh" }); i < 0 || report.Findings[i].Severity != preflight.Note ||
		report.Findings[i].Code != preflight.CodeNotLookedAt || report.Err() != nil {
		t.Errorf("the check:\n%v", report.Findings)
	}
}
