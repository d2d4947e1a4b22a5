package preflight_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/fake"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/preflight"
)

func ExampleDeployKeys() {
	client := fake.NewClientset() // a client of a real cluster goes here: kubernetes.NewForConfig(config)
	bound := func(url string) config.RepoSlot {
		return config.RepoSlot{Slot: "app", State: config.SlotBound, URL: url}
	}
	instance := &config.Instance{
		Git: config.Git{Credentials: []config.GitCredential{{Match: "git.example.test/", SSHKey: "git-ssh"}}},
		Workflows: []config.Workflow{{Name: "review", Workspaces: []config.Workspace{{Repos: []config.RepoSlot{
			bound("git@git.example.test:team/app.git"), bound("git@git.example.test:team/docs.git"),
		}}}}},
	}
	keys, err := preflight.DeployKeys(context.Background(), client.CoreV1().Secrets("team-a"), instance, "team-a")
	if err != nil {
		fmt.Println(err)
	}
	for _, key := range keys {
		switch {
		case key.Unseen != nil:
			fmt.Println(key.Secret, "may be there:", key.Unseen)
		case !key.There:
			fmt.Println(preflight.DeployKeyFix("team-a", key.Secret), "for", key.URLs())
		}
	}
	// Output: dir=$(mktemp -d) && ssh-keygen -q -t ed25519 -N '' -f "$dir/identity" && kubectl -n team-a create secret generic git-ssh --from-file="$dir" && cat "$dir/identity.pub" && rm -r "$dir" for [git@git.example.test:team/app.git git@git.example.test:team/docs.git]
}
