package apply_test

import (
	"fmt"

	"jr2.dev/jr2/apply"
)

func ExampleMarshalEvent() {
	line, err := apply.MarshalEvent(apply.WaveStarted{Phase: apply.Sync, Wave: -2, Objects: 7})
	fmt.Println(string(line), err)
	// Output: {"type":"waveStarted","phase":"Sync","wave":-2,"objects":7} <nil>
}
