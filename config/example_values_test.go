package config_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"jr2.dev/jr2/config"
)

func ExampleParseMemory() {
	bytes, err := config.ParseMemory("1.5Gi")
	fmt.Println(bytes, err)
	_, err = config.ParseMemory("0")
	fmt.Println(err)
	// Output:
	// 1610612736 <nil>
	// must be more than zero
}

func ExampleParseCPU() {
	millicores, err := config.ParseCPU("1.5")
	fmt.Println(millicores, err)
	// Output: 1500 <nil>
}

func ExampleFormatMemory() {
	fmt.Println(config.FormatMemory(1<<40), config.FormatMemory(1<<30+1<<29), config.FormatMemory(1000))
	// Output: 1024Gi 1536Mi 1000
}

func ExampleFormatCPU() {
	fmt.Println(config.FormatCPU(64000), config.FormatCPU(1500))
	// Output: 64 1500m
}

func ExampleParseDotEnv() {
	for _, assignment := range config.ParseDotEnv("# where images go\nexport JR2_REGISTRY=registry.example.com/team # ours\nnot an assignment\n") {
		fmt.Println(assignment.Name, assignment.Value) // a value never prints
	}
	// Output: JR2_REGISTRY ****
}

func ExampleReadDotEnv() {
	_, err := config.ReadDotEnv("no-such-folder/.env")
	fmt.Println(os.IsNotExist(err), err == nil)
	// Output: false true
}

func ExampleNewSecret() {
	token := config.NewSecret("s3cret")
	fmt.Println(token, token.Present(), len(token.Reveal()))
	// Output: **** true 6
}

func ExampleParseHost() {
	host, err := config.ParseHost("https://API.example.com/v1")
	fmt.Println(host, err)
	// Output: api.example.com:443 <nil>
}

func ExampleStandIn() {
	fmt.Println(config.StandIn("ANTHROPIC_API_KEY"))
	// Output: jr2-held-ANTHROPIC_API_KEY
}

func ExampleLookupModelKey() {
	key, known := config.LookupModelKey("OPENAI_API_KEY")
	fmt.Println(key.Provider, key.Host, known)
	// Output: openai api.openai.com true
}

func ExampleModelKeys() {
	for _, key := range config.ModelKeys() {
		if key.Provider == "groq" {
			fmt.Println(key.Env, key.Host)
		}
	}
	// Output: GROQ_API_KEY api.groq.com
}

func ExampleTokenSecretName() {
	fmt.Println(config.TokenSecretName("git.example.test/team/"))
	// Output: jr2-git-845ed3f3
}

func ExampleImageFolder() {
	fmt.Println(config.ImageFolder("file:///instance/images/tool%20box/"))
	fmt.Println(config.ImageFolder("registry.example.com/team/ide:1.4"))
	// Output:
	// /instance/images/tool box true
	//  false
}

func ExampleFileURL() {
	fmt.Println(config.FileURL("/instance/images/tool box"))
	// Output: file:///instance/images/tool%20box
}

func ExampleResolveSize() {
	memory := int64(3) << 30
	size := config.ResolveSize(config.Workspace{Size: config.Limits{Memory: &memory}}, config.Limits{})
	fmt.Println(config.FormatMemory(size.Size.Memory), size.MemorySource, config.FormatCPU(size.Size.CPU), size.CPUSource)
	fmt.Println(config.FormatMemory(size.Harness.Memory))
	// Output:
	// 3Gi machine 1 kit
	// 3008Mi
}

func ExampleServeIsolated() {
	var answer bytes.Buffer
	err := config.ServeIsolated(context.Background(), strings.NewReader("not a request"), &answer)
	fmt.Println(err != nil)
	// Output: true
}

func ExampleRedactURL() {
	fmt.Println(config.RedactURL("https://ana:s3cret@models.example.test/v1"))
	// Output: https://ana:xxxxx@models.example.test/v1
}
