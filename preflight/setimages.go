package preflight

import (
	"errors"
	"fmt"
	"slices"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// mirrors ends a sentence about registries that did not answer.
const mirrors = " — the nodes may reach what cannot be reached from here, and may pull from mirrors that nobody sees from here"

// readable says what keeps a text from being an image reference, by the library that the kubelet uses.
func readable(image string) error {
	if image == "" {
		return errors.New("no image is named")
	}
	_, err := reference.ParseNormalizedNamed(image)
	return err
}

// defaultPolicy is the API server's: what is called latest, by name or for want of a tag, is always pulled.
// https://kubernetes.io/docs/concepts/containers/images/#imagepullpolicy-defaulting
func defaultPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	tagged, ok := reference.TagNameOnly(named).(reference.Tagged)
	if ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// nodeName is an image as a node lists it: with the registry, and with the tag or the digest. "" for what is no reference.
func nodeName(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	if digested, ok := named.(reference.Digested); ok {
		return reference.TrimNamed(named).String() + "@" + digested.Digest().String()
	}
	return reference.TagNameOnly(named).String()
}

// byImage groups the places of one pod by the image that they name; of their pull policies the one that pulls most.
func byImage(uses []imageUse) []imageUse {
	var grouped []imageUse
	places := map[string][]string{}
	for _, use := range uses {
		if places[use.image] == nil {
			grouped = append(grouped, use)
		}
		places[use.image] = append(places[use.image], use.where)
	}
	for i := range grouped {
		grouped[i].where = several(places[grouped[i].image])
		for _, use := range uses {
			if use.image == grouped[i].image && pullsMore(use.policy, grouped[i].policy) {
				grouped[i].policy = use.policy
			}
		}
	}
	return grouped
}

func pullsMore(a, b corev1.PullPolicy) bool {
	order := []corev1.PullPolicy{corev1.PullNever, corev1.PullIfNotPresent, corev1.PullAlways}
	return slices.Index(order, a) > slices.Index(order, b)
}

func missingImage(w *workload, used imageUse) Finding {
	return Finding{
		Severity: Warn, Code: CodeImageMissing, Object: w.object,
		Message: fmt.Sprintf("%s: the registry says that it holds no image %s (%s) — push it, or correct the name", w.object, used.image, used.where),
		Fix:     "push " + used.image + ", or correct the name",
	}
}
