package apply_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/apply"
)

func ExampleMintSecret() {
	random, err := apply.ParseGenerator("hex:32")
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := apply.NewSet("demo", "example-mint",
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "example-mint"}},
		apply.MintSecret("example-mint", "vault", map[string]apply.Generator{"VAULT_KEY": random}))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := apply.MakePlan(context.Background(), shared.Config(), set, apply.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	for range 2 {
		out, err := apply.Apply(context.Background(), shared.Config(), set, apply.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, o := range out.Objects {
			fmt.Println(strings.TrimSpace(fmt.Sprint(o.Action, " ", o.Ref, " ", o.Why)))
		}
	}
	// Output:
	// create      Namespace example-mint
	// mint        Secret example-mint/vault: VAULT_KEY
	// 1 to create, 1 to mint
	// created Namespace example-mint
	// minted Secret example-mint/vault VAULT_KEY
	// unchanged Namespace example-mint
	// unchanged Secret example-mint/vault
}

func ExampleParseGenerator() {
	for _, text := range []string{"base64url:48", "password", "rsa:512"} {
		g, err := apply.ParseGenerator(text)
		fmt.Println(g, err)
	}
	// Output:
	// base64url:48 <nil>
	// password:24 <nil>
	//  rsa:N takes 2048, 3072 or 4096
}

func ExampleGenerator_Generate() {
	g, err := apply.ParseGenerator("ed25519")
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := g.Generate()
	line, _, _ := strings.Cut(string(value), "\n")
	fmt.Println(line, err)
	// Output: -----BEGIN PRIVATE KEY----- <nil>
}
