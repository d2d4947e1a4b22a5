package jr2_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"jr2.dev/jr2"
)

// A program that converges for its users gives each missing deploy key a source. Here the key of one Secret lies in a file, and all others are
// generated; whoever reads the log brings their public halves to the hosts of the repositories.
func ExampleOptions_deployKey() {
	result, err := jr2.Converge(context.Background(), jr2.Options{
		Dir: "path/to/instance", Yes: true, Events: jr2.Narrate(os.Stderr),
		DeployKey: func(ctx context.Context, request jr2.DeployKeyRequest) (jr2.DeployKeySource, error) {
			if request.Secret != "jr2-git-ssh" {
				return jr2.DeployKeySource{Generate: true}, nil
			}
			source := jr2.DeployKeySource{File: "/run/keys/deploy"}
			if _, err := source.Fingerprint(ctx); errors.Is(err, jr2.ErrPassphrase) {
				return jr2.DeployKeySource{Generate: true}, nil
			}
			return source, nil
		},
	})
	var keyless *jr2.DeployKeyError
	if errors.As(err, &keyless) {
		fmt.Println(keyless.Requests[0].Secret, keyless.Requests[0].Repos)
		return
	}
	for _, key := range result.DeployKeys {
		if key.Generated {
			fmt.Println(key.Repos, key.PublicKey)
		}
	}
}
