package images_test

import (
	"fmt"

	"jr2.dev/jr2/images"
)

func ExampleParseRecord() {
	record, err := images.ParseRecord([]byte(`{"sandbox": {"default": "registry.example.com/team/jr2-sandbox-a-default:6389bdf72d50-amd64"}, "sandboxUser": {"default": ""}}`))
	fmt.Println(record.Sandbox["default"], err)
	// Output: registry.example.com/team/jr2-sandbox-a-default:6389bdf72d50-amd64 <nil>
}
