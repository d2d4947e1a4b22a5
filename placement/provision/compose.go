package provision

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/internal/render"
)

// A Composition is what the Sandbox of one Workspace depends on.
type Composition struct {
	// Instance gives the Sandbox its place, its default Size, its environment and its priority.
	Instance *config.Instance
	// Namespace is the Instance's name when empty.
	Namespace string
	// Workflow is the name of the one that Workspace is of; Run the id of the run: a label value each. NewRun makes an id.
	Workflow  string
	Workspace config.Workspace
	Run       string
	// Name of the Sandbox; SandboxName makes one.
	Name   string
	Images Images
	// Repos are the urls of Repo Slots that are bound per run, by slot. One for any other slot wins over what the code binds.
	Repos map[string]string
	// SigningKey is JR2_SIGNING_KEY of the Secret jr2-instance: tokens derive from it.
	SigningKey config.Secret
	// CABundle is the content of the file that harness.caBundle names.
	CABundle []byte
}

// Images are the refs that the pod of a Sandbox runs, by which nodes pull them.
type Images struct {
	// Harness and Custodian are the Kit's.
	Harness, Custodian string
	// Sandbox is the image of the Workspace; empty means the Kit's Harness image.
	Sandbox string
	// Built says that a converge built Sandbox from a folder; User is then the USER that it declares, empty for none: such a pod runs as uid
	// 1000 with a home of its own.
	Built bool
	User  string
	// UserContainer is the image of the User Container; empty means that there is none.
	UserContainer string
}

// Compose makes the Request of a Workspace: the same for the same Composition. Errors: *RequestError, *SlotError, *config.SizeError, or one
// that says what is missing of the Instance or wrong with its image or its repositories.
func Compose(c Composition) (Request, error) {
	if err := c.check(); err != nil {
		return Request{}, err
	}
	in := render.Input{
		Instance: c.Instance, Namespace: c.Namespace, SigningKey: c.SigningKey, CABundle: c.CABundle,
		Kit: render.Kit{Harness: c.Images.Harness, Custodian: c.Images.Custodian, Version: c.Instance.KitVersion},
	}
	repos, err := c.repos()
	if err != nil {
		return Request{}, err
	}
	seat := render.SandboxSeat{
		Name: c.Name, Run: c.Run, Workflow: c.Workflow, Workspace: c.Workspace, Repos: repos,
		Image: orElse(c.Images.Sandbox, c.Images.Harness), Built: c.Images.Built, User: c.Images.User, UserImage: c.Images.UserContainer,
	}
	request := Request{Token: render.SandboxToken(c.SigningKey, c.Name)}
	if request.Sandbox, err = render.Sandbox(in, seat); err != nil {
		return Request{}, err
	}
	for _, repo := range repos {
		request.Repos = append(request.Repos, render.Repo(in, repo))
	}
	return request, nil
}

func (c *Composition) check() error {
	switch {
	case c.Instance == nil:
		return &RequestError{"there is no Instance to make a Sandbox of"}
	case c.Images.Harness == "" || c.Images.Custodian == "":
		return &RequestError{"the refs of the Kit's images are not given"}
	case c.Name == "":
		return &RequestError{"the Sandbox has no name"}
	case c.Name == names.InstanceHarnessName: // a token derives from the name
		return &RequestError{fmt.Sprintf("%q is the Instance Harness's name", c.Name)}
	}
	for what, value := range map[string]string{"a run id": c.Run, "the name of a workflow": c.Workflow} {
		if value == "" {
			return &RequestError{what + " is not given"}
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return &RequestError{fmt.Sprintf("%q can't be %s, which is a label value: %s", value, what, problems[0])}
		}
	}
	return nil
}

// repos are the repositories of the slots, each once.
func (c *Composition) repos() ([]config.Repo, error) {
	var repos []config.Repo
	for _, slot := range c.Workspace.Repos {
		url := slot.URL
		if given := c.Repos[slot.Slot]; given != "" {
			url = given
		}
		if url == "" {
			return nil, &SlotError{Workflow: c.Workflow, Slot: slot.Slot}
		}
		address, err := config.ParseRepoURL(url)
		if err != nil {
			return nil, &RequestError{fmt.Sprintf("Repo Slot %q of workflow %q: %v", slot.Slot, c.Workflow, err)}
		}
		repo := config.Repo{URL: url, Ref: slot.Ref, Scheme: address.Scheme, Identity: address.Identity, Key: address.Key}
		if err := c.admit(slot, repo); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(repos, func(r config.Repo) bool { return r.Identity == repo.Identity }) {
			repos = append(repos, repo)
		}
	}
	return repos, nil
}

// admit wants a credential entry for a url that no code binds.
func (c *Composition) admit(slot config.RepoSlot, repo config.Repo) error {
	if repo.URL == slot.URL {
		return nil
	}
	if _, ok := c.Instance.Git.Match(repo.Identity); !ok {
		return &RequestError{fmt.Sprintf("no entry of git.credentials admits %s, which the run gives for Repo Slot %q", repo.Identity, slot.Slot)}
	}
	return nil
}

// NewRun makes the id of a run: 32 hex digits.
func NewRun() string { return randomHex(16) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) //nolint:errcheck // it never fails
	return hex.EncodeToString(b)
}

// SandboxName makes a name that no other Sandbox has: "ws-", the beginning of the run's id, the path of the Workspace ("x" for the root), its
// number among the Workspaces of the run, and six random characters.
func SandboxName(run string, path []string, number int) string {
	short := func(text string, most int) string {
		text = strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
		return strings.Trim(text[:min(len(text), most)], "-")
	}
	child := orElse(short(strings.Join(path, "-"), 20), "x")
	return strings.Join([]string{"ws", orElse(short(run, 8), "x"), child, strconv.Itoa(number), randomHex(3)}, "-")
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)
