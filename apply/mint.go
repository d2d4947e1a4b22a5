package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// MintAnnotation makes a Secret one whose values are made once, in the cluster: a YAML mapping of its keys to generators, such as
//
//	jr2.dev/mint: |
//	  VAULT_KEY: hex:32
//	  signing.pem: ed25519
//
// ParseGenerator lists the generators. A pair of keys takes a second key for the public one: signing.pem.pub.
//
// Such a Secret is created, and never applied: the request can only create, so that of two who try one makes the values, and an identity that
// may create Secrets and not read them can do it. When it exists, keys that it lacks are added and nothing else is touched: not the values,
// not a value whose generator is another one now, not labels and annotations, but for the mark of the set. Keys of data are given values;
// they too are written when they are missing, and never again. A Secret that was deleted by hand is made again with new values, and a
// Warned says so. One that exists and may not be read counts as unchanged.
const MintAnnotation = "jr2.dev/mint"

// publicSuffix is put to the key of a private key for that of the public one.
const publicSuffix = ".pub"

// MintSecret is a Secret for a Set whose keys are made once; see MintAnnotation. Labels, a type, given values and more annotations may be set
// on it before it becomes part of the set.
func MintSecret(namespace, name string, keys map[string]Generator) *corev1.Secret {
	texts := map[string]string{}
	for k, g := range keys {
		texts[k] = g.String()
	}
	raw, _ := yaml.Marshal(texts) // strings can't fail
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{MintAnnotation: string(raw)}},
	}
}

// A declaration is what a Secret with MintAnnotation asks for.
type declaration struct {
	recipes map[string]recipe
	// secret is what is created, with the given values and without those to be made.
	secret *corev1.Secret
}

// declarationOf reads a Secret with MintAnnotation; nil when the object has none.
func declarationOf(o *unstructured.Unstructured) (*declaration, []fault) {
	annotations, _ := dig(o.Object, "metadata", "annotations").(map[string]any)
	text, ok := annotations[MintAnnotation].(string) // that it is a string is checked with all annotations
	if !ok {
		return nil, nil
	}
	if gvk := o.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "Secret" {
		return nil, []fault{mintFault("only a Secret can be minted")}
	}
	d := &declaration{recipes: map[string]recipe{}, secret: &corev1.Secret{}}
	faults := d.readKeys(text)
	// Strict, because the server is not asked: it sees only what was understood here.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, d.secret, true); err != nil {
		if runtime.IsStrictDecodingError(err) { // it names fields, and no values
			faults = append(faults, fault{"", err.Error()})
		} else {
			faults = append(faults, fault{"", "it does not read as a Secret; are the values of data in base64, and all others of the type that the API has?"})
		}
		return d, faults
	}
	for _, k := range slices.Sorted(maps.Keys(d.recipes)) {
		if _, given := d.secret.Data[k]; given {
			faults = append(faults, mintFault(k+" is in data too; a key has a value that is given or one that is made"))
		}
	}
	if p, _ := positionOf(o); p.isHook() {
		faults = append(faults, mintFault("a hook is deleted and made again, and what is minted is made once"))
	}
	return d, faults
}

func mintFault(text string) fault {
	return fault{fmt.Sprintf("metadata.annotations[%q]", MintAnnotation), text}
}

// readKeys reads the mapping of keys to generators.
func (d *declaration) readKeys(text string) []fault {
	var mapping map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &mapping); err != nil || len(mapping) == 0 {
		return []fault{mintFault("want a YAML mapping of keys to generators, each key once")}
	}
	var faults []fault
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 {
			faults = append(faults, mintFault(fmt.Sprintf("%q is no key of a Secret: %s", key, strings.Join(wrong, "; "))))
			continue
		}
		text, _ := mapping[key].(string)
		g, err := ParseGenerator(text)
		if err != nil {
			faults = append(faults, mintFault(key+": "+err.Error()))
			continue
		}
		d.recipes[key] = recipe{make: g.Generate}
		if !g.makesPair() {
			continue
		}
		public := key + publicSuffix
		if _, taken := mapping[public]; taken {
			faults = append(faults, mintFault(public+" is the public key of "+key+", and has no generator of its own"))
		}
		if len(validation.IsConfigMapKey(public)) > 0 {
			faults = append(faults, mintFault(key+" leaves no room for "+publicSuffix+" in the key of its public key"))
		}
		d.recipes[public] = recipe{from: key}
	}
	return faults
}

// want is the hash of what must be there: the names of the keys. The values are no part of it, and neither is how they are made: what is
// made stays.
func (d *declaration) want() string {
	var parts [][]byte
	for _, k := range d.keys() {
		parts = append(parts, []byte(k))
	}
	return hash(parts...)
}

// made lists the keys whose values are made, sorted.
func (d *declaration) made() []string { return slices.Sorted(maps.Keys(d.recipes)) }

// keys lists all keys that the Secret must have, sorted.
func (d *declaration) keys() []string {
	return slices.Sorted(maps.Keys(d.placeholders()))
}

// placeholders are given values for those that are given, and none worth hiding for those to be made.
func (d *declaration) placeholders() map[string][]byte {
	data := map[string][]byte{}
	for k := range d.recipes {
		data[k] = []byte("x")
	}
	maps.Copy(data, d.secret.Data)
	return data
}

// declare reads the declaration of an object that NewSet found no fault with.
func declare(o *unstructured.Unstructured) (*declaration, error) {
	d, faults := declarationOf(o)
	if len(faults) > 0 {
		return nil, &SetError{Problems: problemsOf("", o, faults)}
	}
	return d, nil
}

func problemsOf(origin string, o *unstructured.Unstructured, faults []fault) []Problem {
	var problems []Problem
	for _, f := range faults {
		problems = append(problems, Problem{Origin: origin, Ref: RefOf(o), Path: f.path, Text: f.text})
	}
	return problems
}

// mints says that the object is created with values that are made, and never applied.
func (o order) mints() bool { return o.mint != nil }

// mintedAsAsked says that nothing changed on a minted Secret since the run that wrote the record, and that the same keys are asked for.
// Any change of an object moves its resourceVersion, whoever made it, and Secrets have few.
func (o order) mintedAsAsked(m *metav1.PartialObjectMetadata, rec record) bool {
	return m.DeletionTimestamp == nil && rec.UID != "" && m.UID == rec.UID && rec.Want == o.want && rec.Entry == m.ResourceVersion
}

// A MintError is a Secret into which values can't be made without harm.
type MintError struct {
	Ref  Ref
	Keys []string // that it lacks, sorted
	Err  error
}

func (e *MintError) Error() string {
	return fmt.Sprintf("%s: %s not minted: %v", e.Ref, strings.Join(e.Keys, ", "), e.Err)
}
func (e *MintError) Unwrap() error { return e.Err }

// isMintError says that an error is one of this engine's own about a minted Secret: it names the Secret and quotes no value.
func isMintError(err error) bool {
	var mint *MintError
	var empty *EmptyKeyError
	return errors.As(err, &mint) || errors.As(err, &empty)
}
